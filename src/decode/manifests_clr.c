/* SPDX-License-Identifier: MIT */
/*
 * .NET: Microsoft-Windows-DotNETRuntime. Names of events, fields and values are those of
 * TraceEvent, which every tool for .NET uses; layouts are those of the runtime's own manifest.
 * Where the runtime writes arrays of C structs with their memory layout, the table contains padding
 * ("_").
 */
#include "decode/manifests_lists.h"

const struct ew_table_event ew_clr_runtime_events[] = {
    {1, 0, "GC/Start", "Count:u4 Reason:u4=GCReason"},
    {1, 1, "GC/Start", "Count:u4 Depth:u4 Reason:u4=GCReason Type:u4=GCType ClrInstanceID:u2"},
    {1, 2, "GC/Start",
     "Count:u4 Depth:u4 Reason:u4=GCReason Type:u4=GCType ClrInstanceID:u2 "
     "ClientSequenceNumber:u8"},
    {2, 0, "GC/Stop", "Count:u4 Depth:u2"},
    {2, 1, "GC/Stop", "Count:u4 Depth:u4 ClrInstanceID:u2"},
    {3, 0, "GC/RestartEEStop", ""},
    {3, 1, "GC/RestartEEStop", "ClrInstanceID:u2"},
    {4, 0, "GC/HeapStats",
     "GenerationSize0:u8 TotalPromotedSize0:u8 GenerationSize1:u8 TotalPromotedSize1:u8 "
     "GenerationSize2:u8 TotalPromotedSize2:u8 GenerationSize3:u8 TotalPromotedSize3:u8 "
     "FinalizationPromotedSize:u8 FinalizationPromotedCount:u8 PinnedObjectCount:u4 "
     "SinkBlockCount:u4 GCHandleCount:u4"},
    {4, 1, "GC/HeapStats",
     "GenerationSize0:u8 TotalPromotedSize0:u8 GenerationSize1:u8 TotalPromotedSize1:u8 "
     "GenerationSize2:u8 TotalPromotedSize2:u8 GenerationSize3:u8 TotalPromotedSize3:u8 "
     "FinalizationPromotedSize:u8 FinalizationPromotedCount:u8 PinnedObjectCount:u4 "
     "SinkBlockCount:u4 GCHandleCount:u4 ClrInstanceID:u2"},
    {4, 2, "GC/HeapStats",
     "GenerationSize0:u8 TotalPromotedSize0:u8 GenerationSize1:u8 TotalPromotedSize1:u8 "
     "GenerationSize2:u8 TotalPromotedSize2:u8 GenerationSize3:u8 TotalPromotedSize3:u8 "
     "FinalizationPromotedSize:u8 FinalizationPromotedCount:u8 PinnedObjectCount:u4 "
     "SinkBlockCount:u4 GCHandleCount:u4 ClrInstanceID:u2 GenerationSize4:u8 "
     "TotalPromotedSize4:u8"},
    {5, 0, "GC/CreateSegment", "Address:x8 Size:x8 Type:u4=SegmentType"},
    {5, 1, "GC/CreateSegment", "Address:x8 Size:x8 Type:u4=SegmentType ClrInstanceID:u2"},
    {6, 0, "GC/FreeSegment", "Address:x8"},
    {6, 1, "GC/FreeSegment", "Address:x8 ClrInstanceID:u2"},
    {7, 0, "GC/RestartEEStart", ""},
    {7, 1, "GC/RestartEEStart", "ClrInstanceID:u2"},
    {8, 0, "GC/SuspendEEStop", ""},
    {8, 1, "GC/SuspendEEStop", "ClrInstanceID:u2"},
    {9, 0, "GC/SuspendEEStart", "Reason:u2=SuspendReason"},
    {9, 1, "GC/SuspendEEStart", "Reason:u4=SuspendReason Count:u4 ClrInstanceID:u2"},
    {10, 0, "GC/AllocationTick", "AllocationAmount:u4 AllocationKind:u4=AllocationKind"},
    {10, 1, "GC/AllocationTick",
     "AllocationAmount:u4 AllocationKind:u4=AllocationKind ClrInstanceID:u2"},
    {10, 2, "GC/AllocationTick",
     "AllocationAmount:u4 AllocationKind:u4=AllocationKind ClrInstanceID:u2 AllocationAmount64:u8 "
     "TypeID:p TypeName:w HeapIndex:u4"},
    {10, 3, "GC/AllocationTick",
     "AllocationAmount:u4 AllocationKind:u4=AllocationKind ClrInstanceID:u2 AllocationAmount64:u8 "
     "TypeID:p TypeName:w HeapIndex:u4 Address:p"},
    {10, 4, "GC/AllocationTick",
     "AllocationAmount:u4 AllocationKind:u4=AllocationKind ClrInstanceID:u2 AllocationAmount64:u8 "
     "TypeID:p TypeName:w HeapIndex:u4 Address:p ObjectSize:u8"},
    {11, 0, "GC/CreateConcurrentThread", ""},
    {11, 1, "GC/CreateConcurrentThread", "ClrInstanceID:u2"},
    {12, 0, "GC/TerminateConcurrentThread", ""},
    {12, 1, "GC/TerminateConcurrentThread", "ClrInstanceID:u2"},
    {13, 0, "GC/FinalizersStop", "Count:u4"},
    {13, 1, "GC/FinalizersStop", "Count:u4 ClrInstanceID:u2"},
    {14, 0, "GC/FinalizersStart", ""},
    {14, 1, "GC/FinalizersStart", "ClrInstanceID:u2"},
    {15, 0, "Type/BulkType",
     "Count:u4 ClrInstanceID:u2 Values[Count]{TypeID:x8 ModuleID:x8 TypeNameID:u4 Flags:x4 "
     "CorElementType:u1 Name:w TypeParameterCount:u4 TypeParameters:x8[TypeParameterCount]}"},
    {16, 0, "GC/BulkRootEdge",
     "Index:u4 Count:u4 ClrInstanceID:u2 Values[Count]{RootedNodeAddress:p GCRootKind:u1 "
     "GCRootFlag:u4 GCRootID:p}"},
    {17, 0, "GC/BulkRootConditionalWeakTableElementEdge",
     "Index:u4 Count:u4 ClrInstanceID:u2 Values[Count]{GCKeyNodeID:p GCValueNodeID:p GCRootID:p}"},
    {18, 0, "GC/BulkNode",
     "Index:u4 Count:u4 ClrInstanceID:u2 Values[Count]{Address:p Size:u8 TypeID:x8 EdgeCount:u8}"},
    {19, 0, "GC/BulkEdge",
     "Index:u4 Count:u4 ClrInstanceID:u2 Values[Count]{Value:p ReferencingFieldID:u4}"},
    {20, 0, "GC/SampledObjectAllocation",
     "Address:p TypeID:p ObjectCountForTypeSample:u4 TotalSizeForTypeSample:u8 ClrInstanceID:u2"},
    {21, 0, "GC/BulkSurvivingObjectRanges",
     "Index:u4 Count:u4 ClrInstanceID:u2 Values[Count]{RangeBase:p RangeLength:u8}"},
    {22, 0, "GC/BulkMovedObjectRanges",
     "Index:u4 Count:u4 ClrInstanceID:u2 Values[Count]{OldRangeBase:p NewRangeBase:p "
     "RangeLength:u8}"},
    {23, 0, "GC/GenerationRange",
     "Generation:u1 RangeStart:p RangeUsedLength:x8 RangeReservedLength:x8 ClrInstanceID:u2"},
    {25, 0, "GC/MarkStackRoots", "HeapNum:u4 ClrInstanceID:u2"},
    {26, 0, "GC/MarkFinalizeQueueRoots", "HeapNum:u4 ClrInstanceID:u2"},
    {27, 0, "GC/MarkHandles", "HeapNum:u4 ClrInstanceID:u2"},
    {28, 0, "GC/MarkCards", "HeapNum:u4 ClrInstanceID:u2"},
    {29, 0, "GC/FinalizeObject", "TypeID:p ObjectID:p ClrInstanceID:u2"},
    {30, 0, "GC/SetGCHandle",
     "HandleID:p ObjectID:p Kind:u4 Generation:u4 AppDomainID:x8 ClrInstanceID:u2"},
    {31, 0, "GC/DestroyGCHandle", "HandleID:p ClrInstanceID:u2"},
    {32, 0, "GC/SampledObjectAllocation",
     "Address:p TypeID:p ObjectCountForTypeSample:u4 TotalSizeForTypeSample:u8 ClrInstanceID:u2"},
    {33, 0, "GC/PinObjectAtGCTime",
     "HandleID:p ObjectID:p ObjectSize:u8 TypeName:w ClrInstanceID:u2"},
    {35, 0, "GC/Triggered", "Reason:u4=GCReason ClrInstanceID:u2"},
    {36, 0, "GC/BulkRootCCW",
     "Count:u4 ClrInstanceID:u2 Values[Count]{GCRootID:x8 ObjectID:x8 TypeID:x8 IUnknown:x8 "
     "RefCount:u4 PeggedRefCount:u4 Flags:x4}"},
    {37, 0, "GC/BulkRCW",
     "Count:u4 ClrInstanceID:u2 Values[Count]{ObjectID:x8 TypeID:x8 IUnknown:x8 VTable:x8 "
     "RefCount:u4 Flags:x4}"},
    {38, 0, "GC/BulkRootStaticVar",
     "Count:u4 AppDomainID:x8 ClrInstanceID:u2 Values[Count]{GCRootID:x8 ObjectID:x8 TypeID:x8 "
     "Flags:x4 FieldName:w}"},
    {39, 0, "GC/DynamicTraceEvent", "Name:w DataSize:u4 Data:bin(DataSize) ClrInstanceID:u2"},
    {50, 0, "ThreadPoolWorkerThread/Start",
     "ActiveWorkerThreadCount:u4 RetiredWorkerThreadCount:u4 ClrInstanceID:u2"},
    {51, 0, "ThreadPoolWorkerThread/Stop",
     "ActiveWorkerThreadCount:u4 RetiredWorkerThreadCount:u4 ClrInstanceID:u2"},
    {52, 0, "ThreadPoolWorkerThreadRetirement/Start",
     "ActiveWorkerThreadCount:u4 RetiredWorkerThreadCount:u4 ClrInstanceID:u2"},
    {53, 0, "ThreadPoolWorkerThreadRetirement/Stop",
     "ActiveWorkerThreadCount:u4 RetiredWorkerThreadCount:u4 ClrInstanceID:u2"},
    {54, 0, "ThreadPoolWorkerThreadAdjustment/Sample", "Throughput:f8 ClrInstanceID:u2"},
    {55, 0, "ThreadPoolWorkerThreadAdjustment/Adjustment",
     "AverageThroughput:f8 NewWorkerThreadCount:u4 Reason:u4 ClrInstanceID:u2"},
    {56, 0, "ThreadPoolWorkerThreadAdjustment/Stats",
     "Duration:f8 Throughput:f8 ThreadWave:f8 ThroughputWave:f8 ThroughputErrorEstimate:f8 "
     "AverageThroughputErrorEstimate:f8 ThroughputRatio:f8 Confidence:f8 NewControlSetting:f8 "
     "NewThreadWaveMagnitude:u2 ClrInstanceID:u2"},
    {57, 0, "ThreadPoolWorkerThread/Wait",
     "ActiveWorkerThreadCount:u4 RetiredWorkerThreadCount:u4 ClrInstanceID:u2"},
    {60, 0, "YieldProcessorMeasurement", "ClrInstanceID:u2 NsPerYield:f8 EstablishedNsPerYield:f8"},
    {63, 0, "ThreadPool/Enqueue", "WorkID:p ClrInstanceID:u2"},
    {64, 0, "ThreadPool/Dequeue", "WorkID:p ClrInstanceID:u2"},
    {65, 0, "ThreadPool/IOPack", "NativeOverlapped:p Overlapped:p ClrInstanceID:u2"},
    {70, 0, "Thread/Creating", "ID:p ClrInstanceID:u2"},
    {71, 0, "Thread/Running", "ID:p ClrInstanceID:u2"},
    {73, 0, "TypeLoad/Start", "TypeLoadStartID:u4 ClrInstanceID:u2"},
    {74, 0, "TypeLoad/Stop",
     "TypeLoadStartID:u4 ClrInstanceID:u2 LoadLevel:u2 TypeID:x8 TypeName:w"},
    {80, 0, "Exception/Start", ""},
    {80, 1, "Exception/Start",
     "ExceptionType:w ExceptionMessage:w ExceptionEIP:p ExceptionHRESULT:i4 "
     "ExceptionFlags:u2|ExceptionFlags ClrInstanceID:u2"},
    {81, 0, "Contention/Start", ""},
    {81, 1, "Contention/Start", "ContentionFlags:u1 ClrInstanceID:u2"},
    {81, 2, "Contention/Start",
     "ContentionFlags:u1 ClrInstanceID:u2 LockID:p AssociatedObjectID:p LockOwnerThreadID:u8"},
    {82, 0, "ClrStack/Walk",
     "ClrInstanceID:u2 Reserved1:u1 Reserved2:u1 FrameCount:u4 Stack:p[FrameCount]"},
    {83, 0, "AppDomainResourceManagement/MemAllocated",
     "AppDomainID:u8 Allocated:u8 ClrInstanceID:u2"},
    {84, 0, "AppDomainResourceManagement/MemSurvived",
     "AppDomainID:u8 Survived:u8 ProcessSurvived:u8 ClrInstanceID:u2"},
    {85, 0, "AppDomainResourceManagement/ThreadCreated",
     "ManagedThreadID:u8 AppDomainID:u8 Flags:u4 ManagedThreadIndex:u4 OSThreadID:u4 "
     "ClrInstanceID:u2"},
    {86, 0, "AppDomainResourceManagement/ThreadTerminated",
     "ManagedThreadID:u8 AppDomainID:u8 ClrInstanceID:u2"},
    {87, 0, "AppDomainResourceManagement/DomainEnter",
     "ManagedThreadID:u8 AppDomainID:u8 ClrInstanceID:u2"},
    {91, 0, "Contention/Stop", "ContentionFlags:u1 ClrInstanceID:u2"},
    {91, 1, "Contention/Stop", "ContentionFlags:u1 ClrInstanceID:u2 DurationNs:f8"},
    {141, 0, "Method/Load",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags"},
    {141, 1, "Method/Load",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags ClrInstanceID:u2"},
    {141, 2, "Method/Load",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags ClrInstanceID:u2 ReJITID:u8"},
    {142, 0, "Method/Unload",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags"},
    {142, 1, "Method/Unload",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags ClrInstanceID:u2"},
    {142, 2, "Method/Unload",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags ClrInstanceID:u2 ReJITID:u8"},
    {143, 0, "Method/LoadVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w"},
    {143, 1, "Method/LoadVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w "
     "ClrInstanceID:u2"},
    {143, 2, "Method/LoadVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w "
     "ClrInstanceID:u2 ReJITID:u8"},
    {144, 0, "Method/UnloadVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w"},
    {144, 1, "Method/UnloadVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w "
     "ClrInstanceID:u2"},
    {144, 2, "Method/UnloadVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w "
     "ClrInstanceID:u2 ReJITID:u8"},
    {145, 0, "Method/JittingStarted",
     "MethodID:u8 ModuleID:u8 MethodToken:u4 MethodILSize:u4 MethodNamespace:w MethodName:w "
     "MethodSignature:w"},
    {145, 1, "Method/JittingStarted",
     "MethodID:u8 ModuleID:u8 MethodToken:u4 MethodILSize:u4 MethodNamespace:w MethodName:w "
     "MethodSignature:w ClrInstanceID:u2"},
    {146, 0, "Method/MemoryAllocatedForJitCode",
     "MethodID:u8 ModuleID:u8 JitHotCodeRequestSize:u8 JitRODataRequestSize:u8 "
     "AllocatedSizeForJitCode:u8 JitAllocFlag:u4 ClrInstanceID:u2"},
    {151, 0, "Loader/DomainModuleLoad",
     "ModuleID:u8 AssemblyID:u8 AppDomainID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 "
     "ModuleILPath:w ModuleNativePath:w"},
    {151, 1, "Loader/DomainModuleLoad",
     "ModuleID:u8 AssemblyID:u8 AppDomainID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 "
     "ModuleILPath:w ModuleNativePath:w ClrInstanceID:u2"},
    {152, 0, "Loader/ModuleLoad",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w"},
    {152, 1, "Loader/ModuleLoad",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w ClrInstanceID:u2"},
    {152, 2, "Loader/ModuleLoad",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w ClrInstanceID:u2 ManagedPdbSignature:g ManagedPdbAge:u4 "
     "ManagedPdbBuildPath:w NativePdbSignature:g NativePdbAge:u4 NativePdbBuildPath:w"},
    {153, 0, "Loader/ModuleUnload",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w"},
    {153, 1, "Loader/ModuleUnload",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w ClrInstanceID:u2"},
    {153, 2, "Loader/ModuleUnload",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w ClrInstanceID:u2 ManagedPdbSignature:g ManagedPdbAge:u4 "
     "ManagedPdbBuildPath:w NativePdbSignature:g NativePdbAge:u4 NativePdbBuildPath:w"},
    {154, 0, "Loader/AssemblyLoad",
     "AssemblyID:u8 AppDomainID:u8 AssemblyFlags:u4|AssemblyFlags FullyQualifiedAssemblyName:w"},
    {154, 1, "Loader/AssemblyLoad",
     "AssemblyID:u8 AppDomainID:u8 BindingID:u8 AssemblyFlags:u4|AssemblyFlags "
     "FullyQualifiedAssemblyName:w ClrInstanceID:u2"},
    {155, 0, "Loader/AssemblyUnload",
     "AssemblyID:u8 AppDomainID:u8 AssemblyFlags:u4|AssemblyFlags FullyQualifiedAssemblyName:w"},
    {155, 1, "Loader/AssemblyUnload",
     "AssemblyID:u8 AppDomainID:u8 BindingID:u8 AssemblyFlags:u4|AssemblyFlags "
     "FullyQualifiedAssemblyName:w ClrInstanceID:u2"},
    {156, 0, "Loader/AppDomainLoad",
     "AppDomainID:u8 AppDomainFlags:u4|AppDomainFlags AppDomainName:w"},
    {156, 1, "Loader/AppDomainLoad",
     "AppDomainID:u8 AppDomainFlags:u4|AppDomainFlags AppDomainName:w AppDomainIndex:u4 "
     "ClrInstanceID:u2"},
    {157, 0, "Loader/AppDomainUnload",
     "AppDomainID:u8 AppDomainFlags:u4|AppDomainFlags AppDomainName:w"},
    {157, 1, "Loader/AppDomainUnload",
     "AppDomainID:u8 AppDomainFlags:u4|AppDomainFlags AppDomainName:w AppDomainIndex:u4 "
     "ClrInstanceID:u2"},
    {158, 0, "PerfTrack/ModuleRangeLoad",
     "ClrInstanceID:u2 ModuleID:u8 RangeBegin:u4 RangeSize:u4 RangeType:u1"},
    {185, 0, "Method/InliningSucceeded",
     "MethodBeingCompiledNamespace:w MethodBeingCompiledName:w MethodBeingCompiledNameSignature:w "
     "InlinerNamespace:w InlinerName:w InlinerNameSignature:w InlineeNamespace:w InlineeName:w "
     "InlineeNameSignature:w ClrInstanceID:u2"},
    {186, 0, "Method/InliningFailed",
     "MethodBeingCompiledNamespace:w MethodBeingCompiledName:w MethodBeingCompiledNameSignature:w "
     "InlinerNamespace:w InlinerName:w InlinerNameSignature:w InlineeNamespace:w InlineeName:w "
     "InlineeNameSignature:w FailAlways:b FailReason:a ClrInstanceID:u2"},
    {187, 0, "Runtime/Start",
     "ClrInstanceID:u2 Sku:u2|Sku BclMajorVersion:u2 BclMinorVersion:u2 BclBuildNumber:u2 "
     "BclQfeNumber:u2 VMMajorVersion:u2 VMMinorVersion:u2 VMBuildNumber:u2 VMQfeNumber:u2 "
     "StartupFlags:u4|StartupFlags StartupMode:u1|StartupMode CommandLine:w ComObjectGuid:g "
     "RuntimeDllPath:w"},
    {188, 0, "Method/TailCallSucceeded",
     "MethodBeingCompiledNamespace:w MethodBeingCompiledName:w MethodBeingCompiledNameSignature:w "
     "CallerNamespace:w CallerName:w CallerNameSignature:w CalleeNamespace:w CalleeName:w "
     "CalleeNameSignature:w TailPrefix:b TailCallType:u4 ClrInstanceID:u2"},
    {189, 0, "Method/TailCallFailed",
     "MethodBeingCompiledNamespace:w MethodBeingCompiledName:w MethodBeingCompiledNameSignature:w "
     "CallerNamespace:w CallerName:w CallerNameSignature:w CalleeNamespace:w CalleeName:w "
     "CalleeNameSignature:w TailPrefix:b FailReason:a ClrInstanceID:u2"},
    {190, 0, "Method/ILToNativeMap",
     "MethodID:u8 ReJITID:u8 MethodExtent:u1 CountOfMapEntries:u2 ILOffsets:u4[CountOfMapEntries] "
     "NativeOffsets:u4[CountOfMapEntries] ClrInstanceID:u2"},
    {200, 0, "GarbageCollection/IncreaseMemoryPressure", "BytesAllocated:u8 ClrInstanceID:u2"},
    {201, 0, "GarbageCollection/DecreaseMemoryPressure", "BytesFreed:u8 ClrInstanceID:u2"},
    {202, 0, "GC/MarkWithType", "HeapNum:u4 ClrInstanceID:u2 Type:u4 Promoted:u8"},
    {203, 2, "GC/Join", "Heap:u4 JoinTime:u4 JoinType:u4 ClrInstanceID:u2 JoinID:u4"},
    {204, 3, "GC/PerHeapHistory",
     "ClrInstanceID:u2 FreeListAllocated:z FreeListRejected:z EndOfSegAllocated:z "
     "CondemnedAllocated:z PinnedAllocated:z PinnedAllocatedAdvance:z "
     "RunningFreeListEfficiency:u4 CondemnReasons0:u4 CondemnReasons1:u4 "
     "CompactMechanisms:u4=Compact ExpandMechanisms:u4=Expand HeapIndex:u4 ExtraGen0Commit:z "
     "Count:u4 Values[Count]{SizeBefore:z FreeListBefore:z FreeObjBefore:z SizeAfter:z "
     "FreeListAfter:z FreeObjAfter:z In:z PinnedSurv:z NonePinnedSurv:z NewAllocation:z}"},
    {205, 2, "GC/GlobalHeapHistory",
     "FinalYoungestDesired:u8 NumHeaps:i4 CondemnedGeneration:u4 Gen0ReductionCount:u4 "
     "Reason:u4=GCReason GlobalMechanisms:u4|GlobalMechanisms ClrInstanceID:u2 "
     "PauseMode:u4=PauseMode MemoryPressure:u4"},
    {205, 3, "GC/GlobalHeapHistory",
     "FinalYoungestDesired:u8 NumHeaps:i4 CondemnedGeneration:u4 Gen0ReductionCount:u4 "
     "Reason:u4=GCReason GlobalMechanisms:u4|GlobalMechanisms ClrInstanceID:u2 "
     "PauseMode:u4=PauseMode MemoryPressure:u4 CondemnReasons0:u4 CondemnReasons1:u4"},
    {205, 4, "GC/GlobalHeapHistory",
     "FinalYoungestDesired:u8 NumHeaps:i4 CondemnedGeneration:u4 Gen0ReductionCount:u4 "
     "Reason:u4=GCReason GlobalMechanisms:u4|GlobalMechanisms ClrInstanceID:u2 "
     "PauseMode:u4=PauseMode MemoryPressure:u4 CondemnReasons0:u4 CondemnReasons1:u4 Count:u4 "
     "Values:u4[Count]"},
    {206, 0, "GC/GenAwareBegin", "Count:u4 ClrInstanceID:u2"},
    {207, 0, "GC/GenAwareEnd", "Count:u4 ClrInstanceID:u2"},
    {208, 0, "GC/LOHCompact",
     "ClrInstanceID:u2 Count:u2 Values[Count]{TimePlan:u4 TimeCompact:u4 TimeRelocate:u4 _:padp "
     "TotalRefs:z ZeroRefs:z}"},
    {209, 0, "GC/FitBucketInfo",
     "ClrInstanceID:u2 BucketKind:u2=BucketKind TotalSize:u8 Count:u2 Values[Count]{Index:u2 "
     "_:pad2 Count:u4 Size:u8}"},
    {280, 0, "TieredCompilation/Settings", "ClrInstanceID:u2 Flags:u4|TieredFlags"},
    {281, 0, "TieredCompilation/Pause", "ClrInstanceID:u2"},
    {282, 0, "TieredCompilation/Resume", "ClrInstanceID:u2 NewMethodCount:u4"},
    {283, 0, "TieredCompilation/BackgroundJitStart", "ClrInstanceID:u2 PendingMethodCount:u4"},
    {284, 0, "TieredCompilation/BackgroundJitStop",
     "ClrInstanceID:u2 PendingMethodCount:u4 JittedMethodCount:u4"},
    {0, 0, NULL, NULL},
};
