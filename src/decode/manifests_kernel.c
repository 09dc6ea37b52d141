/* SPDX-License-Identifier: MIT */
/*
 * The manifest providers of the Windows kernel: the same content as the kernel's classes, for
 * sessions that cannot enable those. Threads are part of Microsoft-Windows-Kernel-Process.
 */
#include "decode/manifests_lists.h"

static const struct ew_table_event process[] = {
    {1, 0, "ProcessStart/Start",
     "ProcessID:u4 CreateTime:ft ParentProcessID:u4 SessionID:u4 ImageName:w"},
    {1, 1, "ProcessStart/Start",
     "ProcessID:u4 CreateTime:ft ParentProcessID:u4 SessionID:u4 Flags:u4 ImageName:w"},
    {1, 2, "ProcessStart/Start",
     "ProcessID:u4 CreateTime:ft ParentProcessID:u4 SessionID:u4 Flags:u4 ImageName:w "
     "ImageChecksum:u4 TimeDateStamp:u4 PackageFullName:w PackageRelativeAppId:w"},
    {1, 3, "ProcessStart/Start",
     "ProcessID:u4 ProcessSequenceNumber:u8 CreateTime:ft ParentProcessID:u4 "
     "ParentProcessSequenceNumber:u8 SessionID:u4 Flags:u4 ProcessTokenElevationType:u4 "
     "ProcessTokenIsElevated:u4 MandatoryLabel:sid ImageName:w ImageChecksum:u4 TimeDateStamp:u4 "
     "PackageFullName:w PackageRelativeAppId:w"},
    {2, 0, "ProcessStop/Stop",
     "ProcessID:u4 CreateTime:ft ExitTime:ft ExitCode:u4 TokenElevationType:u4 HandleCount:u4 "
     "CommitCharge:u8 CommitPeak:u8 ImageName:a"},
    {2, 1, "ProcessStop/Stop",
     "ProcessID:u4 CreateTime:ft ExitTime:ft ExitCode:u4 TokenElevationType:u4 HandleCount:u4 "
     "CommitCharge:u8 CommitPeak:u8 CPUCycleCount:u8 ReadOperationCount:u4 WriteOperationCount:u4 "
     "ReadTransferKiloBytes:u4 WriteTransferKiloBytes:u4 HardFaultCount:u4 ImageName:a"},
    {2, 2, "ProcessStop/Stop",
     "ProcessID:u4 ProcessSequenceNumber:u8 CreateTime:ft ExitTime:ft ExitCode:u4 "
     "TokenElevationType:u4 HandleCount:u4 CommitCharge:u8 CommitPeak:u8 CPUCycleCount:u8 "
     "ReadOperationCount:u4 WriteOperationCount:u4 ReadTransferKiloBytes:u4 "
     "WriteTransferKiloBytes:u4 HardFaultCount:u4 ImageName:a"},
    {3, 0, "ThreadStart/Start",
     "ProcessID:u4 ThreadID:u4 StackBase:p StackLimit:p UserStackBase:p UserStackLimit:p "
     "StartAddr:p Win32StartAddr:p TebBase:p"},
    {3, 1, "ThreadStart/Start",
     "ProcessID:u4 ThreadID:u4 StackBase:p StackLimit:p UserStackBase:p UserStackLimit:p "
     "StartAddr:p Win32StartAddr:p TebBase:p SubProcessTag:u4"},
    {4, 0, "ThreadStop/Stop",
     "ProcessID:u4 ThreadID:u4 StackBase:p StackLimit:p UserStackBase:p UserStackLimit:p "
     "StartAddr:p Win32StartAddr:p TebBase:p"},
    {4, 1, "ThreadStop/Stop",
     "ProcessID:u4 ThreadID:u4 StackBase:p StackLimit:p UserStackBase:p UserStackLimit:p "
     "StartAddr:p Win32StartAddr:p TebBase:p SubProcessTag:u4 CycleTime:u8"},
    {5, 0, "ImageLoad",
     "ImageBase:p ImageSize:p ProcessID:u4 ImageCheckSum:u4 TimeDateStamp:u4 DefaultBase:p "
     "ImageName:w"},
    {6, 0, "ImageUnload",
     "ImageBase:p ImageSize:p ProcessID:u4 ImageCheckSum:u4 TimeDateStamp:u4 DefaultBase:p "
     "ImageName:w"},
    {7, 0, "CpuBasePriorityChange", "ProcessID:u4 ThreadID:u4 OldPriority:u1 NewPriority:u1"},
    {8, 0, "CpuPriorityChange", "ProcessID:u4 ThreadID:u4 OldPriority:u1 NewPriority:u1"},
    {9, 0, "PagePriorityChange", "ProcessID:u4 ThreadID:u4 OldPriority:u1 NewPriority:u1"},
    {10, 0, "IoPriorityChange", "ProcessID:u4 ThreadID:u4 OldPriority:u1 NewPriority:u1"},
    {11, 0, "ProcessFreeze/Start", "FrozenProcessID:u4"},
    {11, 1, "ProcessFreeze/Start", "FrozenProcessID:u4 CreateTime:ft"},
    {12, 0, "ProcessFreeze/Stop", "FrozenProcessID:u4"},
    {12, 1, "ProcessFreeze/Stop", "FrozenProcessID:u4 CreateTime:ft"},
    {13, 0, "JobStart/Start", "ContainerID:g JobID:u4 StatusCode:u4"},
    {14, 0, "JobTerminate/Stop", "ContainerID:g JobID:u4 StatusCode:u4"},
    {15, 0, "ProcessRundown",
     "ProcessID:u4 CreateTime:ft ParentProcessID:u4 SessionID:u4 Flags:u4 ImageName:w "
     "ImageChecksum:u4 TimeDateStamp:u4 PackageFullName:w PackageRelativeAppId:w"},
    {15, 1, "ProcessRundown",
     "ProcessID:u4 ProcessSequenceNumber:u8 CreateTime:ft ParentProcessID:u4 "
     "ParentProcessSequenceNumber:u8 SessionID:u4 Flags:u4 ProcessTokenElevationType:u4 "
     "ProcessTokenIsElevated:u4 MandatoryLabel:sid ImageName:w ImageChecksum:u4 TimeDateStamp:u4 "
     "PackageFullName:w PackageRelativeAppId:w"},
    {17, 0, "PsDiskIoAttribution/Start", "JobID:u4 DiskIoAttribution:p StatusCode:u4"},
    {18, 0, "PsDiskIoAttribution/Stop", "JobID:u4 DiskIoAttribution:p StatusCode:u4"},
    {19, 0, "PsIoRateControl/Start",
     "JobID:u4 IoRateControl:p ControlType:u4 RateType:u4 RateAmount:u4 StatusCode:u4"},
    {19, 1, "PsIoRateControl/Start",
     "JobID:u4 IoRateControl:p MaxIops:u8 MaxBandwidth:u8 MaxTimePercent:u8 ReservationIops:u8 "
     "ReservationBandwidth:u8 ReservationTimePercent:u8 CriticalReservationIops:u8 "
     "CriticalReservationBandwidth:u8 CriticalReservationTimePercent:u8 ControlFlags:u4 "
     "VolumeName:w StatusCode:u4"},
    {19, 2, "PsIoRateControl/Start",
     "JobID:u4 IoRateControl:p MaxIops:u8 MaxBandwidth:u8 MaxTimePercent:u8 ReservationIops:u8 "
     "ReservationBandwidth:u8 ReservationTimePercent:u8 CriticalReservationIops:u8 "
     "CriticalReservationBandwidth:u8 CriticalReservationTimePercent:u8 SoftMaxIops:u8 "
     "SoftMaxBandwidth:u8 SoftMaxTimePercent:u8 ControlFlags:u4 VolumeName:w StatusCode:u4"},
    {20, 0, "PsIoRateControl/Stop",
     "JobID:u4 IoRateControl:p ControlType:u4 RateType:u4 RateAmount:u4 StatusCode:u4"},
    {20, 1, "PsIoRateControl/Stop",
     "JobID:u4 IoRateControl:p MaxIops:u8 MaxBandwidth:u8 MaxTimePercent:u8 ReservationIops:u8 "
     "ReservationBandwidth:u8 ReservationTimePercent:u8 CriticalReservationIops:u8 "
     "CriticalReservationBandwidth:u8 CriticalReservationTimePercent:u8 ControlFlags:u4 "
     "VolumeName:w StatusCode:u4"},
    {20, 2, "PsIoRateControl/Stop",
     "JobID:u4 IoRateControl:p MaxIops:u8 MaxBandwidth:u8 MaxTimePercent:u8 ReservationIops:u8 "
     "ReservationBandwidth:u8 ReservationTimePercent:u8 CriticalReservationIops:u8 "
     "CriticalReservationBandwidth:u8 CriticalReservationTimePercent:u8 SoftMaxIops:u8 "
     "SoftMaxBandwidth:u8 SoftMaxTimePercent:u8 ControlFlags:u4 VolumeName:w StatusCode:u4"},
    {21, 0, "ThreadWorkOnBehalfUpdate", "OldWorkOnBehalfThreadID:u4 NewWorkOnBehalfThreadID:u4"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event file[] = {
    {10, 0, "NameCreate", "FileKey:p FileName:w"},
    {11, 0, "NameDelete", "FileKey:p FileName:w"},
    {12, 0, "Create",
     "Irp:p ThreadId:p FileObject:p CreateOptions:x4 CreateAttributes:x4 ShareAccess:x4 "
     "FileName:w"},
    {12, 1, "Create",
     "Irp:p FileObject:p IssuingThreadId:u4 CreateOptions:x4 CreateAttributes:x4 ShareAccess:x4 "
     "FileName:w"},
    {13, 0, "Cleanup", "Irp:p ThreadId:p FileObject:p FileKey:p"},
    {13, 1, "Cleanup", "Irp:p FileObject:p FileKey:p IssuingThreadId:u4"},
    {14, 0, "Close", "Irp:p ThreadId:p FileObject:p FileKey:p"},
    {14, 1, "Close", "Irp:p FileObject:p FileKey:p IssuingThreadId:u4"},
    {15, 0, "Read", "ByteOffset:u8 Irp:p ThreadId:p FileObject:p FileKey:p IOSize:u4 IOFlags:x4"},
    {15, 1, "Read",
     "ByteOffset:u8 Irp:p FileObject:p FileKey:p IssuingThreadId:u4 IOSize:u4 IOFlags:x4 "
     "?ExtraFlags:x4"},
    {16, 0, "Write", "ByteOffset:u8 Irp:p ThreadId:p FileObject:p FileKey:p IOSize:u4 IOFlags:x4"},
    {16, 1, "Write",
     "ByteOffset:u8 Irp:p FileObject:p FileKey:p IssuingThreadId:u4 IOSize:u4 IOFlags:x4 "
     "?ExtraFlags:x4"},
    {17, 0, "SetInformation",
     "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4"},
    {17, 1, "SetInformation",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {18, 0, "SetDelete", "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4"},
    {18, 1, "SetDelete",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {19, 0, "Rename", "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4"},
    {19, 1, "Rename",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {20, 0, "DirEnum",
     "Irp:p ThreadId:p FileObject:p FileKey:p Length:u4 InfoClass:u4 FileIndex:u4 FileName:w"},
    {20, 1, "DirEnum",
     "Irp:p FileObject:p FileKey:p IssuingThreadId:u4 Length:u4 InfoClass:u4 FileIndex:u4 "
     "FileName:w"},
    {21, 0, "Flush", "Irp:p ThreadId:p FileObject:p FileKey:p"},
    {21, 1, "Flush", "Irp:p FileObject:p FileKey:p IssuingThreadId:u4"},
    {22, 0, "QueryInformation",
     "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4"},
    {22, 1, "QueryInformation",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {23, 0, "FSCTL", "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4"},
    {23, 1, "FSCTL",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {24, 0, "OperationEnd", "Irp:p ExtraInformation:p Status:x4"},
    {25, 0, "DirNotify",
     "Irp:p ThreadId:p FileObject:p FileKey:p Length:u4 InfoClass:u4 FileIndex:u4 FileName:w"},
    {25, 1, "DirNotify",
     "Irp:p FileObject:p FileKey:p IssuingThreadId:u4 Length:u4 InfoClass:u4 FileIndex:u4 "
     "FileName:w"},
    {26, 0, "DeletePath",
     "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4 FilePath:w"},
    {26, 1, "DeletePath",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4 FilePath:w"},
    {27, 0, "RenamePath",
     "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4 FilePath:w"},
    {27, 1, "RenamePath",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4 FilePath:w"},
    {28, 0, "SetLinkPath",
     "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4 FilePath:w"},
    {28, 1, "SetLinkPath",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4 FilePath:w"},
    {29, 0, "Rename", "Irp:p ThreadId:p FileObject:p FileKey:p ExtraInformation:p InfoClass:u4"},
    {29, 1, "Rename",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {30, 0, "CreateNewFile",
     "Irp:p ThreadId:p FileObject:p CreateOptions:x4 CreateAttributes:x4 ShareAccess:x4 "
     "FileName:w"},
    {30, 1, "CreateNewFile",
     "Irp:p FileObject:p IssuingThreadId:u4 CreateOptions:x4 CreateAttributes:x4 ShareAccess:x4 "
     "FileName:w"},
    {31, 1, "SetSecurity",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {32, 1, "QuerySecurity",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {33, 1, "SetEA",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {34, 1, "QueryEA",
     "Irp:p FileObject:p FileKey:p ExtraInformation:p IssuingThreadId:u4 InfoClass:u4"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event disk[] = {
    {10, 0, "DiskRead",
     "DiskNumber:u4 IrpFlags:x4 TransferSize:u4 Reserved:u4 ByteOffset:u8 FileObject:p "
     "IORequestPacket:p HighResResponseTime:u8"},
    {11, 0, "DiskWrite",
     "DiskNumber:u4 IrpFlags:x4 TransferSize:u4 Reserved:u4 ByteOffset:u8 FileObject:p "
     "IORequestPacket:p HighResResponseTime:u8"},
    {14, 0, "DiskFlush", "DiskNumber:u4 IrpFlags:x4 HighResResponseTime:u8 IORequestPacket:p"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event memory[] = {
    {1, 0, "MemInfo",
     "PriorityLevels:u1 ZeroPageCount:z FreePageCount:z ModifiedPageCount:z "
     "ModifiedNoWritePageCount:z BadPageCount:z StandbyPageCounts:z[PriorityLevels] "
     "RepurposedPageCounts:z[PriorityLevels]"},
    {1, 1, "MemInfo",
     "PriorityLevels:u1 ZeroPageCount:z FreePageCount:z ModifiedPageCount:z "
     "ModifiedNoWritePageCount:z BadPageCount:z StandbyPageCounts:z[PriorityLevels] "
     "RepurposedPageCounts:z[PriorityLevels] ModifiedPageCountPageFile:z PagedPoolPageCount:z "
     "NonPagedPoolPageCount:z MdlPageCount:z CommitPageCount:z"},
    {2, 0, "MemInfoWS", "Count:u4 WSCommitInfo:bin"},
    {3, 0, "MemInfoSessionWS", "Count:u4 SessionWSCommitInfo:bin"},
    {4, 0, "WorkingSetOutSwap/Start", "ProcessId:u4"},
    {4, 1, "WorkingSetOutSwap/Start", "ProcessId:u4 Flags:x4"},
    {5, 0, "WorkingSetOutSwap/Stop", "ProcessId:u4 Status:x4 PagesProcessed:u4"},
    {5, 1, "WorkingSetOutSwap/Stop",
     "ProcessId:u4 Status:x4 PagesProcessed:z WriteCombinePagesProcessed:z "
     "UncachedPagesProcessed:z CleanPagesProcessed:z"},
    {6, 0, "WorkingSetInSwap/Start", "ProcessId:u4"},
    {6, 1, "WorkingSetInSwap/Start", "ProcessId:u4 Flags:x4"},
    {7, 0, "WorkingSetInSwap/Stop", "ProcessId:u4 Status:x4"},
    {8, 0, "Acg", "AcgFlag:u4"},
    {9, 0, "WorkingSetInSwap", "ProcessId:u4 Status:x4"},
    {10, 0, "MdlAllocation",
     "DurationInMicroseconds:u8 TotalBytes:u8 LowAddress:x8 HighAddress:x8 SkipBytes:u8 "
     "MemoryDescriptorList:p IdealNode:u4 Flags:x4"},
    {11, 0, "ContAllocation",
     "DurationInMicroseconds:u8 TotalBytes:u8 LowAddress:x8 HighAddress:x8 Boundary:u8 "
     "PhysicalAddress:x8 MappedAddress:p AllocatedFromPool:b ProtectionMask:x4 PreferredNode:u4"},
    {12, 0, "MemInfoNode", "PartitionId:u4 Count:u4 MemoryNodeInfo:bin"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event network[] = {
    {10, 0, "KERNEL_NETWORK_TASK_TCPIP/Datasent.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port startime:u4 endtime:u4 seqnum:u4 "
     "connid:p"},
    {11, 0, "KERNEL_NETWORK_TASK_TCPIP/Datareceived.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u4 connid:p"},
    {12, 0, "KERNEL_NETWORK_TASK_TCPIP/Connectionattempted.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port mss:u2 sackopt:u2 tsopt:u2 "
     "wsopt:u2 rcvwin:u4 rcvwinscale:i2 sndwinscale:i2 seqnum:u4 connid:p"},
    {13, 0, "KERNEL_NETWORK_TASK_TCPIP/Disconnectissued.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u4 connid:p"},
    {14, 0, "KERNEL_NETWORK_TASK_TCPIP/Dataretransmitted.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u4 connid:p"},
    {15, 0, "KERNEL_NETWORK_TASK_TCPIP/Connectionaccepted.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port mss:u2 sackopt:u2 tsopt:u2 "
     "wsopt:u2 rcvwin:u4 rcvwinscale:i2 sndwinscale:i2 seqnum:u4 connid:p"},
    {16, 0, "KERNEL_NETWORK_TASK_TCPIP/Reconnectattempted.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u4 connid:p"},
    {17, 0, "KERNEL_NETWORK_TASK_TCPIP/TCPconnectionattemptfailed.", "Proto:u2 FailureCode:u2"},
    {18, 0, "KERNEL_NETWORK_TASK_TCPIP/Protocolcopieddataonbehalfofuser.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u4 connid:p"},
    {26, 0, "KERNEL_NETWORK_TASK_TCPIP/Datasent.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port startime:u4 endtime:u4 seqnum:u4 "
     "connid:p"},
    {27, 0, "KERNEL_NETWORK_TASK_TCPIP/Datareceived.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u4 connid:p"},
    {28, 0, "KERNEL_NETWORK_TASK_TCPIP/Connectionattempted.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port mss:u2 sackopt:u2 tsopt:u2 "
     "wsopt:u2 rcvwin:u4 rcvwinscale:i2 sndwinscale:i2 seqnum:u4 connid:p"},
    {29, 0, "KERNEL_NETWORK_TASK_TCPIP/Disconnectissued.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u4 connid:p"},
    {30, 0, "KERNEL_NETWORK_TASK_TCPIP/Dataretransmitted.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u4 connid:p"},
    {31, 0, "KERNEL_NETWORK_TASK_TCPIP/Connectionaccepted.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port mss:u2 sackopt:u2 tsopt:u2 "
     "wsopt:u2 rcvwin:u4 rcvwinscale:i2 sndwinscale:i2 seqnum:u4 connid:p"},
    {32, 0, "KERNEL_NETWORK_TASK_TCPIP/Reconnectattempted.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u4 connid:p"},
    {34, 0, "KERNEL_NETWORK_TASK_TCPIP/Protocolcopieddataonbehalfofuser.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u4 connid:p"},
    {42, 0, "KERNEL_NETWORK_TASK_UDPIP/DatasentoverUDPprotocol.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u4 connid:p"},
    {43, 0, "KERNEL_NETWORK_TASK_UDPIP/DatareceivedoverUDPprotocol.",
     "PID:u4 size:u4 daddr:ip4 saddr:ip4 dport:port sport:port seqnum:u4 connid:p"},
    {49, 0, "KERNEL_NETWORK_TASK_UDPIP/UDPconnectionattemptfailed.", "Proto:u2 FailureCode:u2"},
    {58, 0, "KERNEL_NETWORK_TASK_UDPIP/DatasentoverUDPprotocol.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u4 connid:p"},
    {59, 0, "KERNEL_NETWORK_TASK_UDPIP/DatareceivedoverUDPprotocol.",
     "PID:u4 size:u4 daddr:ip6 saddr:ip6 dport:port sport:port seqnum:u4 connid:p"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event event_tracing[] = {
    {8, 0, "ETW_TASK_PROVIDER/ETW_OPCODE_REGISTER", "ProviderName:g"},
    {9, 0, "ETW_TASK_PROVIDER/ETW_OPCODE_UNREGISTER", "ProviderName:g"},
    {14, 0, "ETW_TASK_PROVIDER/ETW_OPCODE_ENABLE", "ProviderName:g SessionName:w"},
    {0, 0, NULL, NULL},
};

const struct ew_table_provider ew_table_kernel[] = {
    {.guid = "22fb2cd6-0e7b-422b-a0c7-2fad1fd0e716",
     .name = "Microsoft-Windows-Kernel-Process",
     .events = process},
    {.guid = "edd08927-9cc4-4e65-b970-c2560fb5c289",
     .name = "Microsoft-Windows-Kernel-File",
     .events = file},
    {.guid = "c7bde69a-e1e0-4177-b6ef-283ad1525271",
     .name = "Microsoft-Windows-Kernel-Disk",
     .events = disk},
    {.guid = "d1d93ef7-e1f2-4f45-9943-03d245fe6c00",
     .name = "Microsoft-Windows-Kernel-Memory",
     .events = memory},
    {.guid = "7dd42a49-5329-4832-8dfd-43d979153a88",
     .name = "Microsoft-Windows-Kernel-Network",
     .events = network},
    {.guid = "b675ec37-bdb6-4648-bc92-f3fdc74d3ca2",
     .name = "Microsoft-Windows-Kernel-EventTracing",
     .events = event_tracing},
    {.guid = NULL},
};
