/* SPDX-License-Identifier: MIT */
/*
 * Other providers: RPC, HTTP and PowerShell with their most frequent events, and the names of
 * providers with events that are self-describing or not known here.
 */
#include "decode/manifests_lists.h"

static const struct ew_table_event http_service[] = {
    {1, 0, "HTTPRequestTraceTask/RecvReq",
     "RequestId:u8 ConnectionId:u8 RemoteAddrLength:u4 RemoteAddr:sa(RemoteAddrLength)"},
    {2, 0, "HTTPRequestTraceTask/Parse", "RequestObj:p HttpVerb:u4 Url:w"},
    {3, 0, "HTTPRequestTraceTask/Deliver",
     "RequestObj:p RequestId:u8 SiteId:u4 RequestQueueName:w Url:w Status:x4"},
    {4, 0, "HTTPRequestTraceTask/RecvResp",
     "RequestId:u8 ConnectionId:u8 StatusCode:u2 Verb:a HeaderLength:u4 EntityChunkCount:u2 "
     "CachePolicy:u4"},
    {5, 0, "HTTPRequestTraceTask/RecvRespLast", "RequestId:u8"},
    {6, 0, "HTTPRequestTraceTask/RecvBody", "RequestId:u8 ConnectionId:u8"},
    {7, 0, "HTTPRequestTraceTask/RecvBodyLast", "RequestId:u8"},
    {8, 0, "HTTPRequestTraceTask/FastResp",
     "RequestId:u8 ConnectionId:u8 StatusCode:u2 Verb:a HeaderLength:u4 EntityChunkCount:u2 "
     "CachePolicy:u4"},
    {9, 0, "HTTPRequestTraceTask/FastRespLast", "RequestId:u8"},
    {10, 0, "HTTPRequestTraceTask/SendComplete", "RequestId:u8 HttpStatus:u2"},
    {11, 0, "HTTPRequestTraceTask/CachedAndSend", "RequestId:u8 HttpStatus:u2"},
    {12, 0, "HTTPRequestTraceTask/FastSend", "RequestId:u8 HttpStatus:u2"},
    {13, 0, "HTTPRequestTraceTask/ZeroSend", "RequestId:u8 HttpStatus:u2"},
    {14, 0, "HTTPRequestTraceTask/LastSndError", "RequestId:u8 HttpStatus:u2"},
    {15, 0, "HTTPRequestTraceTask/SndError", "RequestId:u8 Reason:a Status:x4"},
    {16, 0, "HTTPRequestTraceTask/SrvdFrmCache", "RequestObj:p SiteId:u4 BytesSent:u4"},
    {16, 1, "HTTPRequestTraceTask/SrvdFrmCache",
     "RequestObj:p SiteId:u4 BytesSent:u4 RequestId:u8 Encoding:a"},
    {21, 0, "HTTPConnectionTraceTask/ConnConnect",
     "ConnectionObj:p LocalAddrLength:u4 LocalAddr:sa(LocalAddrLength) RemoteAddrLength:u4 "
     "RemoteAddr:sa(RemoteAddrLength)"},
    {22, 0, "HTTPConnectionTraceTask/ConnIdAssgn", "RequestId:u8 ConnectionId:u8 ConnectionObj:p"},
    {23, 0, "HTTPConnectionTraceTask/ConnClose", "ConnectionObj:p Abortive:u4"},
    {24, 0, "HTTPConnectionTraceTask/ConnCleanup", "ConnectionObj:p"},
    {51, 0, "HTTPLoggingTraceTask/LogFileWrite",
     "Status:x4 Handle:p Type:u4 Group:u4 Format:u4 ResType:a SiteId:u4"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event rpc[] = {
    {1, 1, "RpcClientCall/Stop",
     "ImageName:w ComputerName:w ProcessID:u4 TimeStamp:st GeneratingComponent:u4 Status:x4 "
     "DetectionLocation:u2 Flags:u2 NumberOfParameters:u2 "
     "Params[NumberOfParameters]{ParameterType:i4 AnsiValue:a UnicodeValue:w LValue:x4 PValue:x8}"},
    {2, 1, "RpcServerCall", "ImageName:w InterfaceUuid:g FilterKey:g"},
    {5, 1, "RpcClientCall/Start",
     "InterfaceUuid:g ProcNum:u4 Protocol:u4 NetworkAddress:w Endpoint:w Options:w "
     "AuthenticationLevel:u4 AuthenticationService:u4 ImpersonationLevel:u4"},
    {6, 1, "RpcServerCall/Start",
     "InterfaceUuid:g ProcNum:u4 Protocol:u4 NetworkAddress:w Endpoint:w Options:w "
     "AuthenticationLevel:u4 AuthenticationService:u4 ImpersonationLevel:u4"},
    {7, 1, "RpcClientCall/Stop", "Status:x4"},
    {8, 1, "RpcServerCall/Stop", "Status:x4"},
    {12, 1, "Debug/Start", "ObjectType:u4 Operation:u4 Address:x8 Data:x8"},
    {13, 1, "Debug/Stop", "ObjectType:u4 Operation:u4 Address:x8 Data:x8"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event powershell[] = {
    {4103, 1, "ExecutePipeline", "ContextInfo:w UserData:w Payload:w"},
    {4104, 1, "ExecuteCommand",
     "MessageNumber:i4 MessageTotal:i4 ScriptBlockText:w ScriptBlockId:w ?Path:w"},
    {7937, 1, "CommandLifecycle", "ContextInfo:w UserData:w Payload:w"},
    {7938, 1, "EngineLifecycle", "ContextInfo:w UserData:w Payload:w"},
    {7939, 1, "ProviderLifecycle", "ContextInfo:w UserData:w Payload:w"},
    {7942, 1, "TraceMessage",
     "Class:w Method:w WorkflowGuid:w Message:w JobData:w ActivityName:w ActivityGuid:w "
     "Parameters:w"},
    {40961, 1, "PowershellConsoleStartup/Start", ""},
    {40962, 1, "PowershellConsoleStartup/Stop", ""},
    {53504, 1, "NamedPipe/Open", "param1:w param2:w"},
    {0, 0, NULL, NULL},
};

/* Providers that merging tools add to a recording. Their events are named by the kernel tables. */
static const struct ew_table_event event_metadata[] = {
    {32, 0, "MetaData/EventInfo",
     "ProviderGuid:g EventGuid:g Id:u2 Version:u1 Channel:u1 Level:u1 Opcode:u1 Task:u2 Keyword:x8 "
     "DecodingSource:u4"},
    {33, 0, "MetaData/EventMapInfo",
     "ProviderGuid:g NameOffset:u4 Flag:x4 EntryCount:u4 MapEntryValueType:u4"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event win_sat[] = {
    {33, 0, "WinSat/WinSPR", "Version:u4 UncompressedSize:u4 CompressedXml:bin"},
    {35, 0, "WinSat/Metrics", "Version:u4 UncompressedSize:u4 CompressedXml:bin"},
    {37, 0, "WinSat/SystemConfig", "Version:u4 UncompressedSize:u4 CompressedXml:bin"},
    {0, 0, NULL, NULL},
};

const struct ew_table_provider ew_table_names[] = {
    {.guid = "bbccf6c1-6cd1-48c4-80ff-839482e37671",
     .name = "KernelTraceControl",
     .events = event_metadata,
     .classic = true},
    {.guid = "ed54dff8-c409-4cf6-bf83-05e1e61a09c4",
     .name = "KernelTraceControl",
     .events = win_sat,
     .classic = true},
    {.guid = "dd5ef90a-6398-47a4-ad34-4dcecdef795f",
     .name = "Microsoft-Windows-HttpService",
     .events = http_service},
    {.guid = "6ad52b32-d609-4be9-ae07-ce8dae937e39",
     .name = "Microsoft-Windows-RPC",
     .events = rpc},
    {.guid = "a0c1853b-5c40-4b15-8766-3cf1c58f985a",
     .name = "Microsoft-Windows-PowerShell",
     .events = powershell},
    {.guid = "3a26b1ff-7484-7484-7484-15261f42614d", .name = "Microsoft.ML.ONNXRuntime"},
    {.guid = "331c3b3a-2005-44c2-ac5e-77220c37d6b4", .name = "Microsoft-Windows-Kernel-Power"},
    {.guid = "0f67e49f-fe51-4e9f-b490-6f2948cc6027",
     .name = "Microsoft-Windows-Kernel-Processor-Power"},
    {.guid = "70eb4f03-c1de-4f73-a051-33d13d5413bd", .name = "Microsoft-Windows-Kernel-Registry"},
    {.guid = "9c205a39-1250-487d-abd7-e831c6290539", .name = "Microsoft-Windows-Kernel-PnP"},
    {.guid = "a68ca8b7-004f-d7b6-a698-07e2de0f1f5d", .name = "Microsoft-Windows-Kernel-General"},
    {.guid = "c514638f-7723-485b-bcfc-96565d735d4a", .name = "Microsoft-Windows-Kernel-Acpi"},
    {.guid = "e02a841c-75a3-4fa7-afc8-ae09cf9b7f23",
     .name = "Microsoft-Windows-Kernel-Audit-API-Calls"},
    {.guid = "2f07e2ee-15db-40f1-90ef-9d7ba282188a", .name = "Microsoft-Windows-TCPIP"},
    {.guid = "e53c6823-7bb8-44bb-90dc-3f86090d48a6", .name = "Microsoft-Windows-Winsock-AFD"},
    {.guid = "43d1a55c-76d6-4f7e-995c-64c711e5cafe", .name = "Microsoft-Windows-WinINet"},
    {.guid = "1c95126e-7eea-49a9-a3fe-a378b03ddb4d", .name = "Microsoft-Windows-DNS-Client"},
    {.guid = "54849625-5478-4994-a5ba-3e3b0328c30d", .name = "Microsoft-Windows-Security-Auditing"},
    {.guid = "f4e1897c-bb5d-5668-f1d8-040f4d8dd344",
     .name = "Microsoft-Windows-Threat-Intelligence"},
    {.guid = "2a576b87-09a7-520e-c21a-4942f0271d67",
     .name = "Microsoft-Antimalware-Scan-Interface"},
    {.guid = "ddcc3826-a68a-4e0d-bcfd-9c06c27c6948",
     .name = "Microsoft-Windows-Energy-Estimation-Engine"},
    {.guid = "9e9bba3c-2e38-40cb-99f4-9e8281425164", .name = "Microsoft-Windows-Dwm-Core"},
    {.guid = "8c416c79-d49b-4f01-a467-e56d3aa8234c", .name = "Microsoft-Windows-Win32k"},
    {.guid = "db6f6ddb-ac77-4e88-8253-819df9bbf140", .name = "Microsoft-Windows-Direct3D11"},
    {.guid = "5d8087dd-3a9b-4f56-90df-49196cdc4f11", .name = "Microsoft-Windows-Direct3D12"},
    {.guid = "cc2bcbba-16b6-4cf3-8990-d74c2e8af500",
     .name = "Microsoft-Windows-DotNETRuntimeStress"},
    {.guid = "2e5dba47-a3d2-4d16-8ee0-6671ffdcd7b5",
     .name = "System.Threading.Tasks.TplEventSource"},
    {.guid = "8e9f5090-2d75-4d03-8a81-e5afbf85daf1",
     .name = "System.Diagnostics.Eventing.FrameworkEventSource"},
    {.guid = "315a8872-923e-4ea2-9889-33cd4754bf64", .name = "Microsoft-Windows-Immersive-Shell"},
    {.guid = "a8a71ac1-040f-54a2-07ca-00a89b5ab761", .name = "PerfView"},
    {.guid = NULL},
};
