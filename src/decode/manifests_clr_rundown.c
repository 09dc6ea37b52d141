/* SPDX-License-Identifier: MIT */
/*
 * .NET: the rundown provider (what was loaded and compiled, reported at the end of a recording),
 * the private provider, and the names of values that all three providers share.
 */
#include "decode/manifests_lists.h"

static const struct ew_table_map maps[] = {
    {"GCReason",
     "AllocSmall=0 Induced=1 LowMemory=2 Empty=3 AllocLarge=4 OutOfSpaceSOH=5 OutOfSpaceLOH=6 "
     "InducedNotForced=7 Internal=8 InducedLowMemory=9 InducedCompacting=10 LowMemoryHost=11 "
     "PMFullGC=12 LowMemoryHostBlocking=13 BgcTuningSOH=14 BgcTuningLOH=15 BgcStepping=16 "
     "InducedAggressive=17"},
    {"GCType", "NonConcurrentGC=0 BackgroundGC=1 ForegroundGC=2"},
    {"SuspendReason",
     "SuspendOther=0 SuspendForGC=1 SuspendForAppDomainShutdown=2 SuspendForCodePitching=3 "
     "SuspendForShutdown=4 SuspendForDebugger=5 SuspendForGCPrep=6 SuspendForDebuggerSweep=7"},
    {"SegmentType", "SmallObjectHeap=0 LargeObjectHeap=1 ReadOnlyHeap=2 PinnedObjectHeap=3"},
    {"AllocationKind", "Small=0 Large=1 Pinned=2"},
    {"PauseMode", "Batch=0 Interactive=1 LowLatency=2 SustainedLowLatency=3 NoGC=4"},
    {"BucketKind", "FLItem=0 PlugsInCondemned=1"},
    {"GlobalMechanisms",
     "None=0 Concurrent=0x1 Compaction=0x2 Promotion=0x4 Demotion=0x8 CardBundles=0x10"},
    {"Compact",
     "not_specified=0 compact_low_ephemeral=0x80000001 compact_high_frag=0x80000002 "
     "compact_no_gaps=0x80000004 compact_loh_forced=0x80000008 compact_last_gc=0x80000010 "
     "compact_induced_compacting=0x80000020 compact_fragmented_gen0=0x80000040 "
     "compact_high_mem_load=0x80000080 compact_high_mem_frag=0x80000100 "
     "compact_vhigh_mem_frag=0x80000200 compact_no_gc_mode=0x80000400 "
     "compact_aggressive_compacting=0x80000800"},
    {"Expand", "not_specified=0 expand_reuse_normal=0x80000001 expand_reuse_bestfit=0x80000002 "
               "expand_new_seg_ep=0x80000004 expand_new_seg=0x80000008 expand_no_memory=0x80000010 "
               "expand_next_full_gc=0x80000020"},
    {"Sku", "None=0 DesktopClr=1 CoreClr=2"},
    {"StartupMode", "None=0 ManagedExe=1 HostedCLR=2 IjwDll=4 ComActivated=8 Other=0x10"},
    {"StartupFlags",
     "None=0 CONCURRENT_GC=1 LOADER_OPTIMIZATION_SINGLE_DOMAIN=2 "
     "LOADER_OPTIMIZATION_MULTI_DOMAIN=4 LOADER_SAFEMODE=0x10 LOADER_SETPREFERENCE=0x100 "
     "SERVER_GC=0x1000 HOARD_GC_VM=0x2000 SINGLE_VERSION_HOSTING_INTERFACE=0x4000 "
     "LEGACY_IMPERSONATION=0x10000 DISABLE_COMMITTHREADSTACK=0x20000 "
     "ALWAYSFLOW_IMPERSONATION=0x40000 TRIM_GC_COMMIT=0x80000 ETW=0x100000 SERVER_BUILD=0x200000 "
     "ARM=0x400000"},
    {"AppDomainFlags", "None=0 Default=1 Executable=2 Shared=4"},
    {"AssemblyFlags", "None=0 DomainNeutral=1 Dynamic=2 Native=4 Collectible=8 ReadyToRun=0x10"},
    {"ModuleFlags", "None=0 DomainNeutral=1 Native=2 Dynamic=4 Manifest=8 IbcOptimized=0x10 "
                    "ReadyToRunModule=0x20 PartialReadyToRunModule=0x40"},
    {"MethodFlags", "None=0 Dynamic=1 Generic=2 HasSharedGenericCode=4 Jitted=8 JitHelper=0x10 "
                    "ProfilerRejectedPrecompiledCode=0x20 ReadyToRunRejectedPrecompiledCode=0x40"},
    {"ExceptionFlags",
     "None=0 HasInnerException=1 Nested=2 ReThrown=4 CorruptedState=8 CLSCompliant=0x10"},
    {"TieredFlags", "None=0 QuickJit=1 QuickJitForLoops=2 TieredPGO=4 ReadyToRun=8"},
    {"BitSettings", "None=0 GCSettingsConcurrent=1 GCSettingsLargePages=2 GCSettingsFrozenSegs=4 "
                    "GCSettingsHardLimitConfig=8 GCSettingsNoAffinitize=0x10"},
    {"NgenBindReason", "START_BIND=0 REJECT_IL_SIG=9"},
    {NULL, NULL},
};

static const struct ew_table_event rundown[] = {
    {0, 0, "ClrStack/Walk",
     "ClrInstanceID:u2 Reserved1:u1 Reserved2:u1 FrameCount:u4 Stack:p[FrameCount]"},
    {10, 0, "GC/SettingsRundown",
     "HardLimit:u8 LOHThreshold:u8 PhysicalMemoryConfig:u8 Gen0MinBudgetConfig:u8 "
     "Gen0MaxBudgetConfig:u8 HighMemPercentConfig:u4 BitSettings:u4|BitSettings ClrInstanceID:u2"},
    {141, 0, "Method/DCStart",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags"},
    {141, 1, "Method/DCStart",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags ClrInstanceID:u2"},
    {141, 2, "Method/DCStart",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags ClrInstanceID:u2 ReJITID:u8"},
    {142, 0, "Method/DCStop",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags"},
    {142, 1, "Method/DCStop",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags ClrInstanceID:u2"},
    {142, 2, "Method/DCStop",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags ClrInstanceID:u2 ReJITID:u8"},
    {143, 0, "Method/DCStartVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w"},
    {143, 1, "Method/DCStartVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w "
     "ClrInstanceID:u2"},
    {143, 2, "Method/DCStartVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w "
     "ClrInstanceID:u2 ReJITID:u8"},
    {144, 0, "Method/DCStopVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w"},
    {144, 1, "Method/DCStopVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w "
     "ClrInstanceID:u2"},
    {144, 2, "Method/DCStopVerbose",
     "MethodID:u8 ModuleID:u8 MethodStartAddress:x8 MethodSize:u4 MethodToken:u4 "
     "MethodFlags:u4|MethodFlags MethodNamespace:w MethodName:w MethodSignature:w "
     "ClrInstanceID:u2 ReJITID:u8"},
    {145, 0, "Method/DCStartComplete", ""},
    {145, 1, "Method/DCStartComplete", "ClrInstanceID:u2"},
    {146, 0, "Method/DCStopComplete", ""},
    {146, 1, "Method/DCStopComplete", "ClrInstanceID:u2"},
    {147, 0, "Method/DCStartInit", ""},
    {147, 1, "Method/DCStartInit", "ClrInstanceID:u2"},
    {148, 0, "Method/DCStopInit", ""},
    {148, 1, "Method/DCStopInit", "ClrInstanceID:u2"},
    {149, 0, "Method/DCStartILToNativeMap",
     "MethodID:u8 ReJITID:u8 MethodExtent:u1 CountOfMapEntries:u2 ILOffsets:u4[CountOfMapEntries] "
     "NativeOffsets:u4[CountOfMapEntries] ClrInstanceID:u2"},
    {150, 0, "Method/DCStopILToNativeMap",
     "MethodID:u8 ReJITID:u8 MethodExtent:u1 CountOfMapEntries:u2 ILOffsets:u4[CountOfMapEntries] "
     "NativeOffsets:u4[CountOfMapEntries] ClrInstanceID:u2"},
    {151, 0, "Loader/DomainModuleDCStart",
     "ModuleID:u8 AssemblyID:u8 AppDomainID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 "
     "ModuleILPath:w ModuleNativePath:w"},
    {151, 1, "Loader/DomainModuleDCStart",
     "ModuleID:u8 AssemblyID:u8 AppDomainID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 "
     "ModuleILPath:w ModuleNativePath:w ClrInstanceID:u2"},
    {152, 0, "Loader/DomainModuleDCStop",
     "ModuleID:u8 AssemblyID:u8 AppDomainID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 "
     "ModuleILPath:w ModuleNativePath:w"},
    {152, 1, "Loader/DomainModuleDCStop",
     "ModuleID:u8 AssemblyID:u8 AppDomainID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 "
     "ModuleILPath:w ModuleNativePath:w ClrInstanceID:u2"},
    {153, 0, "Loader/ModuleDCStart",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w"},
    {153, 1, "Loader/ModuleDCStart",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w ClrInstanceID:u2"},
    {153, 2, "Loader/ModuleDCStart",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w ClrInstanceID:u2 ManagedPdbSignature:g ManagedPdbAge:u4 "
     "ManagedPdbBuildPath:w NativePdbSignature:g NativePdbAge:u4 NativePdbBuildPath:w"},
    {154, 0, "Loader/ModuleDCStop",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w"},
    {154, 1, "Loader/ModuleDCStop",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w ClrInstanceID:u2"},
    {154, 2, "Loader/ModuleDCStop",
     "ModuleID:u8 AssemblyID:u8 ModuleFlags:u4|ModuleFlags Reserved1:u4 ModuleILPath:w "
     "ModuleNativePath:w ClrInstanceID:u2 ManagedPdbSignature:g ManagedPdbAge:u4 "
     "ManagedPdbBuildPath:w NativePdbSignature:g NativePdbAge:u4 NativePdbBuildPath:w"},
    {155, 0, "Loader/AssemblyDCStart",
     "AssemblyID:u8 AppDomainID:u8 AssemblyFlags:u4|AssemblyFlags FullyQualifiedAssemblyName:w"},
    {155, 1, "Loader/AssemblyDCStart",
     "AssemblyID:u8 AppDomainID:u8 BindingID:u8 AssemblyFlags:u4|AssemblyFlags "
     "FullyQualifiedAssemblyName:w ClrInstanceID:u2"},
    {156, 0, "Loader/AssemblyDCStop",
     "AssemblyID:u8 AppDomainID:u8 AssemblyFlags:u4|AssemblyFlags FullyQualifiedAssemblyName:w"},
    {156, 1, "Loader/AssemblyDCStop",
     "AssemblyID:u8 AppDomainID:u8 BindingID:u8 AssemblyFlags:u4|AssemblyFlags "
     "FullyQualifiedAssemblyName:w ClrInstanceID:u2"},
    {157, 0, "Loader/AppDomainDCStart",
     "AppDomainID:u8 AppDomainFlags:u4|AppDomainFlags AppDomainName:w"},
    {157, 1, "Loader/AppDomainDCStart",
     "AppDomainID:u8 AppDomainFlags:u4|AppDomainFlags AppDomainName:w AppDomainIndex:u4 "
     "ClrInstanceID:u2"},
    {158, 0, "Loader/AppDomainDCStop",
     "AppDomainID:u8 AppDomainFlags:u4|AppDomainFlags AppDomainName:w"},
    {158, 1, "Loader/AppDomainDCStop",
     "AppDomainID:u8 AppDomainFlags:u4|AppDomainFlags AppDomainName:w AppDomainIndex:u4 "
     "ClrInstanceID:u2"},
    {159, 0, "Loader/ThreadDCStop",
     "ManagedThreadID:u8 AppDomainID:u8 Flags:u4 ManagedThreadIndex:u4 OSThreadID:u4 "
     "ClrInstanceID:u2"},
    {160, 0, "PerfTrack/ModuleRangeDCStart",
     "ClrInstanceID:u2 ModuleID:u8 RangeBegin:u4 RangeSize:u4 RangeType:u1"},
    {161, 0, "PerfTrack/ModuleRangeDCStop",
     "ClrInstanceID:u2 ModuleID:u8 RangeBegin:u4 RangeSize:u4 RangeType:u1"},
    {187, 0, "Runtime/Start",
     "ClrInstanceID:u2 Sku:u2|Sku BclMajorVersion:u2 BclMinorVersion:u2 BclBuildNumber:u2 "
     "BclQfeNumber:u2 VMMajorVersion:u2 VMMinorVersion:u2 VMBuildNumber:u2 VMQfeNumber:u2 "
     "StartupFlags:u4|StartupFlags StartupMode:u1|StartupMode CommandLine:w ComObjectGuid:g "
     "RuntimeDllPath:w"},
    {280, 0, "TieredCompilationRundown/SettingsDCStart", "ClrInstanceID:u2 Flags:u4|TieredFlags"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event private_events[] = {
    {2, 0, "GC/Settings", "SegmentSize:u8 LargeObjectSegmentSize:u8 ServerGC:b"},
    {2, 1, "GC/Settings", "SegmentSize:u8 LargeObjectSegmentSize:u8 ServerGC:b ClrInstanceID:u2"},
    {4, 2, "GC/PerHeapHistory",
     "GenData[5]{SizeBefore:z FreeListSpaceBefore:z FreeObjSpaceBefore:z SizeAfter:z "
     "FreeListSpaceAfter:z FreeObjSpaceAfter:z In:z Out:z NewAllocation:z SurvRate:z} "
     "CondemnReasons0:u4 CondemnReasons1:u4 MemoryPressure:u4 ExpandMechanisms:u4=Expand "
     "CompactMechanisms:u4=Compact ConcurrentCompactMechanisms:u4 HeapIndex:u4 ExtraGen0Commit:u4 "
     "ClrInstanceID:u1"},
    {5, 0, "GC/GlobalHeapHistory",
     "FinalYoungestDesired:u8 NumHeaps:i4 CondemnedGeneration:u4 Gen0ReductionCount:u4 "
     "Reason:u4=GCReason GlobalMechanisms:u4|GlobalMechanisms"},
    {5, 1, "GC/GlobalHeapHistory",
     "FinalYoungestDesired:u8 NumHeaps:i4 CondemnedGeneration:u4 Gen0ReductionCount:u4 "
     "Reason:u4=GCReason GlobalMechanisms:u4|GlobalMechanisms ClrInstanceID:u2"},
    {7, 0, "GC/MarkStackRoots", "HeapNum:u4"},
    {7, 1, "GC/MarkStackRoots", "HeapNum:u4 ClrInstanceID:u2"},
    {8, 0, "GC/MarkFinalizeQueueRoots", "HeapNum:u4"},
    {8, 1, "GC/MarkFinalizeQueueRoots", "HeapNum:u4 ClrInstanceID:u2"},
    {9, 0, "GC/MarkHandles", "HeapNum:u4"},
    {9, 1, "GC/MarkHandles", "HeapNum:u4 ClrInstanceID:u2"},
    {10, 0, "GC/MarkCards", "HeapNum:u4"},
    {10, 1, "GC/MarkCards", "HeapNum:u4 ClrInstanceID:u2"},
    {151, 0, "ClrStack/Walk",
     "ClrInstanceID:u2 Reserved1:u1 Reserved2:u1 FrameCount:u4 Stack:p[FrameCount]"},
    {158, 0, "PerfTrack/ModuleRangeLoad",
     "ClrInstanceID:u2 ModuleID:u8 RangeBegin:u4 RangeSize:u4 RangeType:u1"},
    {159, 0, "Binding/PolicyPhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {160, 0, "Binding/PolicyPhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {161, 0, "Binding/NgenPhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {162, 0, "Binding/NgenPhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {163, 0, "Binding/LoopupAndProbingPhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {164, 0, "Binding/LookupAndProbingPhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {165, 0, "Binding/LoaderPhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {166, 0, "Binding/LoaderPhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {167, 0, "Binding/PhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {168, 0, "Binding/PhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {169, 0, "Binding/DownloadPhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {170, 0, "Binding/DownloadPhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {171, 0, "Binding/LoaderAssemblyInitPhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {172, 0, "Binding/LoaderAssemblyInitPhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {173, 0, "Binding/LoaderMappingPhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {174, 0, "Binding/LoaderMappingPhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {175, 0, "Binding/LoaderDeliverEventPhaseStart",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {176, 0, "Binding/LoaderDeliverEventsPhaseStop",
     "AppDomainID:u4 LoadContextID:u4 FromLoaderCache:u4 DynamicLoad:u4 AssemblyCodebase:w "
     "AssemblyName:w ClrInstanceID:u2"},
    {188, 0, "NgenBinder/NgenBind",
     "ClrInstanceID:u2 BindingID:u8 ReasonCode:u4=NgenBindReason AssemblyName:w"},
    {196, 0, "Binding/FusionMessage", "ClrInstanceID:u2 Prepend:b Message:w"},
    {0, 0, NULL, NULL},
};

const struct ew_table_provider ew_table_clr[] = {
    {.guid = "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4",
     .name = "Microsoft-Windows-DotNETRuntime",
     .events = ew_clr_runtime_events,
     .maps = maps,
     .first = true},
    {.guid = "a669021c-c450-4609-a035-5af59af4df18",
     .name = "Microsoft-Windows-DotNETRuntimeRundown",
     .events = rundown,
     .maps = maps,
     .first = true},
    {.guid = "763fd754-7086-4dfe-95eb-c01a46faf4ca",
     .name = "Microsoft-Windows-DotNETRuntimePrivate",
     .events = private_events,
     .maps = maps,
     .first = true},
    {.guid = NULL},
};
