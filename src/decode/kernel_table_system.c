/* SPDX-License-Identifier: MIT */
/*
 * Other layouts: the recording's own events, lost events, pool, heap, objects, ALPC, and those that
 * KernelTraceControl adds when recordings are merged.
 */
#include "decode/kernel_table.h"

const struct ew_kernel_item ew_kernel_no_items[1];

/* ---------------------------------------------------------------- EventTrace */

#define SYSTEM_TIME(name)                                                                     \
    K(OPEN, name), K(U16, Year), K(U16, Month), K(U16, DayOfWeek), K(U16, Day), K(U16, Hour), \
        K(U16, Minute), K(U16, Second), K(U16, Milliseconds), K_ONLY(CLOSE)

static const struct ew_kernel_item trace_header[] = {
    K(U32, BufferSize),
    K(U32, Version),
    K(U32, ProviderVersion),
    K(U32, NumberOfProcessors),
    K(TIME, EndTime),
    K(U32, TimerResolution),
    K(U32, MaxFileSize),
    K(X32, LogFileMode),
    K(U32, BuffersWritten),
    K(U32, StartBuffers),
    K(U32, PointerSize),
    K(U32, EventsLost),
    K(U32, CPUSpeed),
    K(PTR, LoggerName),
    K(PTR, LogFileName),
    K(OPEN, TimeZoneInformation),
    K(I32, Bias),
    K_ARG(CHARS, StandardName, 32),
    SYSTEM_TIME(StandardDate),
    K(I32, StandardBias),
    K_ARG(CHARS, DaylightName, 32),
    SYSTEM_TIME(DaylightDate),
    K(I32, DaylightBias),
    K_ONLY(CLOSE),
    K(U32, Padding),
    K(TIME, BootTime),
    K(U64, PerfFreq),
    K(TIME, StartTime),
    K(U32, ReservedFlags),
    K(U32, BuffersLost),
    K(WIDE, SessionNameString),
    K(WIDE, LogFileNameString),
};
static const struct ew_kernel_item trace_extension[] = {
    K(X32, GroupMask1), K(X32, GroupMask2),        K(X32, GroupMask3), K(X32, GroupMask4),
    K(X32, GroupMask5), K(X32, GroupMask6),        K(X32, GroupMask7), K(X32, GroupMask8),
    K_ONLY(MAYEND),     K(U32, KernelEventVersion)};
static const struct ew_kernel_item trace_debug_id[] = {K(GUID, Guid), K(U32, Age),
                                                       K(ANSI, PdbName)};
static const struct ew_kernel_item trace_build[] = {K(ANSI, BuildString)};
static const struct ew_kernel_item trace_binary[] = {
    K_ARG(U32, GuidCount, 1), K_TWO(LIST, Guid, 1, 1), K(GUID, Guid), K(WIDE, BinaryPath)};
static const struct ew_kernel_item trace_partition[] = {
    K(U16, EventVersion),      K(U16, Reserved),     K(U32, PartitionType),
    K(I64, QpcOffsetFromRoot), K(GUID, PartitionId), K(GUID, ParentId)};

static const struct ew_kernel_event trace_events[] = {
    ROW(0, 0, "EventTrace", trace_header),
    ROW(5, 0, "EventTrace/Extension", trace_extension),
    ROW_EMPTY(8, "EventTrace/RundownComplete"),
    ROW(32, 0, "EventTrace/EndExtension", trace_extension),
    ROW(64, 0, "EventTrace/DbgIdRSDS", trace_debug_id),
    ROW(66, 0, "EventTrace/BuildInfo", trace_build),
    ROW(67, 0, "EventTrace/ProviderBinaryPath", trace_binary),
    ROW(80, 0, "EventTrace/PartitionInfoExtension", trace_partition),
};
const struct ew_kernel_class ew_kernel_eventtrace =
    EW_KERNEL_CLASS("EventTrace", "Windows Kernel", trace_events);

static const struct ew_kernel_event lost_events[] = {
    ROW_EMPTY(32, "LostEvent"),
    ROW_EMPTY(33, "LostEvent/Buffer"),
    ROW_EMPTY(34, "LostEvent/File"),
};
const struct ew_kernel_class ew_kernel_lost =
    EW_KERNEL_CLASS("LostEvent", "Windows Kernel", lost_events);

/* -------------------------------------------------------------- Pool and heap */

static const struct ew_kernel_item pool_entry[] = {K(X32, Type), K(X32, Tag),
                                                   K(SIZE, NumberOfBytes), K(PTR, Entry)};
static const struct ew_kernel_item pool_session_entry[] = {
    K(X32, Type), K(X32, Tag), K(SIZE, NumberOfBytes), K(PTR, Entry), K(U32, SessionId)};

static const struct ew_kernel_event pool_events[] = {
    ROW(32, 0, "PoolTrace/PoolAllocation", pool_entry),
    ROW(33, 0, "PoolTrace/SessionPoolAllocation", pool_session_entry),
    ROW(34, 0, "PoolTrace/PoolFree", pool_entry),
    ROW(35, 0, "PoolTrace/SessionPoolFree", pool_session_entry),
    ROW_NAME(40, "PoolTrace/PoolSnapDCStart"),
    ROW_NAME(41, "PoolTrace/PoolSnapDCStop"),
    ROW_NAME(42, "PoolTrace/BigPoolSnapDCStart"),
    ROW_NAME(43, "PoolTrace/BigPoolSnapDCStop"),
    ROW_NAME(44, "PoolTrace/SessionPoolSnapDCStart"),
    ROW_NAME(45, "PoolTrace/SessionPoolSnapDCStop"),
    ROW_NAME(46, "PoolTrace/SessionBigPoolSnapDCStart"),
    ROW_NAME(47, "PoolTrace/SessionBigPoolSnapDCStop"),
};
const struct ew_kernel_class ew_kernel_pool =
    EW_KERNEL_CLASS("PoolTrace", "Windows Kernel", pool_events);

#define HEAP_SPACES K(SIZE, FreeSpace), K(SIZE, CommittedSpace), K(SIZE, ReservedSpace)

static const struct ew_kernel_item heap_create[] = {K(PTR, HeapHandle), K(X32, HeapFlags)};
static const struct ew_kernel_item heap_create_3[] = {
    K(PTR, HeapHandle), K(X32, HeapFlags), K(SIZE, ReservedSpace), K(SIZE, CommittedSpace),
    K(SIZE, AllocatedSpace)};
static const struct ew_kernel_item heap_alloc[] = {K(PTR, HeapHandle), K(SIZE, AllocSize),
                                                   K(PTR, AllocAddress), K(U32, SourceId)};
static const struct ew_kernel_item heap_realloc[] = {
    K(PTR, HeapHandle),    K(PTR, NewAllocAddress), K(PTR, OldAllocAddress),
    K(SIZE, NewAllocSize), K(SIZE, OldAllocSize),   K(U32, SourceId)};
static const struct ew_kernel_item heap_free[] = {K(PTR, HeapHandle), K(PTR, FreeAddress),
                                                  K(U32, SourceId)};
static const struct ew_kernel_item heap_handle[] = {K(PTR, HeapHandle)};
static const struct ew_kernel_item heap_expand[] = {
    K(PTR, HeapHandle), K(SIZE, CommittedSize), K(PTR, CommitAddress),  HEAP_SPACES,
    K(U32, NoOfUCRs),   K_ONLY(MAYEND),         K(SIZE, AllocatedSpace)};
static const struct ew_kernel_item heap_contract[] = {
    K(PTR, HeapHandle), K(SIZE, DeCommittedSize), K(PTR, DeCommitAddress), HEAP_SPACES,
    K(U32, NoOfUCRs),   K_ONLY(MAYEND),           K(SIZE, AllocatedSpace)};
static const struct ew_kernel_item heap_snapshot[] = {
    K(PTR, HeapHandle),     HEAP_SPACES,
    K(X32, HeapFlags),      K(U32, ProcessId),
    K(SIZE, LargeUCRSpace), K(U32, FreeListLength),
    K(U32, UCRLength),      K_ONLY(MAYEND),
    K(SIZE, AllocatedSpace)};
static const struct ew_kernel_item heap_commit[] = {K(PTR, HeapHandle), K(PTR, Block),
                                                    K(SIZE, Size), K(PTR, Caller)};
static const struct ew_kernel_item heap_subsegment[] = {
    K(PTR, HeapHandle), K(PTR, SubSegment), K(SIZE, SubSegmentSize), K(SIZE, BlockSize)};

static const struct ew_kernel_event heap_events[] = {
    ROW(32, 0, "Heap/Create", heap_create),
    ROW(32, 3, "Heap/Create", heap_create_3),
    ROW(33, 0, "Heap/Alloc", heap_alloc),
    ROW(34, 0, "Heap/ReAlloc", heap_realloc),
    ROW(35, 0, "Heap/Destroy", heap_handle),
    ROW(36, 0, "Heap/Free", heap_free),
    ROW(37, 0, "Heap/Expand", heap_expand),
    ROW(38, 0, "Heap/SnapShot", heap_snapshot),
    ROW(42, 0, "Heap/Contract", heap_contract),
    ROW(43, 0, "Heap/Lock", heap_handle),
    ROW(44, 0, "Heap/Unlock", heap_handle),
    ROW(45, 0, "Heap/Validate", heap_handle),
    ROW(46, 0, "Heap/Walk", heap_handle),
    ROW(47, 0, "Heap/SubsegmentAlloc", heap_subsegment),
    ROW(48, 0, "Heap/SubsegmentFree", heap_subsegment),
    ROW(49, 0, "Heap/SubsegmentAllocCached", heap_subsegment),
    ROW(50, 0, "Heap/SubsegmentFreeCached", heap_subsegment),
    ROW(51, 0, "Heap/Commit", heap_commit),
    ROW(52, 0, "Heap/Decommit", heap_commit),
};
const struct ew_kernel_class ew_kernel_heap =
    EW_KERNEL_CLASS("Heap", "Windows Kernel", heap_events);

/* ----------------------------------------------------------- Objects and ALPC */

static const struct ew_kernel_item object_handle[] = {K(PTR, Object), K(U32, Handle),
                                                      K(U16, ObjectType), K(WIDE, ObjectName)};
static const struct ew_kernel_item object_duplicate[] = {
    K(PTR, Object), K(U32, SourceHandle), K(U32, TargetHandle), K(U32, TargetProcessId),
    K(U16, ObjectType)};
static const struct ew_kernel_item object_type[] = {K(U16, ObjectType), K(U16, Reserved),
                                                    K(WIDE, TypeName)};
static const struct ew_kernel_item object_rundown[] = {
    K(PTR, Object), K(U32, ProcessId), K(U32, Handle), K(U16, ObjectType), K(WIDE, ObjectName)};
static const struct ew_kernel_item object_life[] = {K(PTR, Object), K(U16, ObjectType)};
static const struct ew_kernel_item object_reference[] = {K(PTR, Object), K(X32, Tag),
                                                         K(U32, Count)};

static const struct ew_kernel_event object_events[] = {
    ROW(32, 0, "Object/CreateHandle", object_handle),
    ROW(33, 0, "Object/CloseHandle", object_handle),
    ROW(34, 0, "Object/DuplicateHandle", object_duplicate),
    ROW(36, 0, "Object/TypeDCStart", object_type),
    ROW(37, 0, "Object/TypeDCEnd", object_type),
    ROW(38, 0, "Object/HandleDCStart", object_rundown),
    ROW(39, 0, "Object/HandleDCEnd", object_rundown),
    ROW(48, 0, "Object/CreateObject", object_life),
    ROW(49, 0, "Object/DeleteObject", object_life),
    ROW(50, 0, "Object/ReferenceObject", object_reference),
    ROW(51, 0, "Object/DereferenceObject", object_reference),
};
const struct ew_kernel_class ew_kernel_object =
    EW_KERNEL_CLASS("Object", "Windows Kernel", object_events);

static const struct ew_kernel_item alpc_message[] = {K(U32, MessageID)};
static const struct ew_kernel_item alpc_wait[] = {K(U32, IsServerPort), K(WIDE, PortName)};
static const struct ew_kernel_item alpc_unwait[] = {K(X32, Status)};

static const struct ew_kernel_event alpc_events[] = {
    ROW(33, 0, "ALPC/SendMessage", alpc_message),  ROW(34, 0, "ALPC/ReceiveMessage", alpc_message),
    ROW(35, 0, "ALPC/WaitForReply", alpc_message), ROW(36, 0, "ALPC/WaitForNewMessage", alpc_wait),
    ROW(37, 0, "ALPC/Unwait", alpc_unwait),
};
const struct ew_kernel_class ew_kernel_alpc =
    EW_KERNEL_CLASS("ALPC", "Windows Kernel", alpc_events);

/* --------------------------------------------------------- KernelTraceControl */

static const struct ew_kernel_item image_id[] = {K(PTR, ImageBase), K(SIZE, ImageSize),
                                                 K(U32, ProcessId), K(U32, TimeDateStamp),
                                                 K(WIDE, OriginalFileName)};
static const struct ew_kernel_item image_none[] = {K(PTR, ImageBase), K(U32, ProcessId)};
static const struct ew_kernel_item image_debug[] = {
    K(PTR, ImageBase), K(U32, ProcessId), K(GUID, GuidSig), K(U32, Age), K(ANSI, PDBFileName)};
/* A portable PDB. */
static const struct ew_kernel_item image_portable[] = {K(PTR, ImageBase), K(U32, ProcessId),
                                                       K(U32, TimeDateStamp), K(U16, MajorVersion),
                                                       K(U16, MinorVersion)};
static const struct ew_kernel_item image_version[] = {
    K(U32, ImageSize),    K(U32, TimeDateStamp),   K(WIDE, OrigFileName), K(WIDE, FileDescription),
    K(WIDE, FileVersion), K(WIDE, BinFileVersion), K(WIDE, VerLanguage),  K(WIDE, ProductName),
    K(WIDE, CompanyName), K(WIDE, ProductVersion), K(WIDE, FileId),       K(WIDE, ProgramId)};

static const struct ew_kernel_event image_id_events[] = {
    ROW(0, 0, "ImageID", image_id),
    ROW(32, 0, "ImageID/None", image_none),
    ROW(36, 0, "ImageID/DbgID_RSDS", image_debug),
    ROW(37, 0, "ImageID/DbgID_ILRSDS", image_debug),
    ROW(38, 0, "ImageID/DbgPPDB", image_portable),
    ROW(40, 0, "ImageID/DbgDeterm", image_none),
    ROW(64, 0, "ImageID/FileVersion", image_version),
};
const struct ew_kernel_class ew_kernel_imageid =
    EW_KERNEL_CLASS("ImageID", "KernelTraceControl", image_id_events);

static const struct ew_kernel_item config_build[] = {K(TIME, InstallDate), K(WIDE, BuildLab),
                                                     K(WIDE, ProductName)};
static const struct ew_kernel_item config_paths[] = {K(WIDE, SystemDirectory),
                                                     K(WIDE, SystemWindowsDirectory)};
static const struct ew_kernel_item config_volume[] = {K(WIDE, Value)};
static const struct ew_kernel_item config_mapping[] = {K(WIDE, NtPath), K(WIDE, DosPath)};

static const struct ew_kernel_event config_events[] = {
    ROW(32, 0, "SysConfig/BuildInfo", config_build),
    ROW(33, 0, "SysConfig/SystemPaths", config_paths),
    ROW(34, 0, "SysConfig/UnknownVolume", config_volume),
    ROW(35, 0, "SysConfig/VolumeMapping", config_mapping),
};
const struct ew_kernel_class ew_kernel_sysconfig =
    EW_KERNEL_CLASS("SysConfig", "Windows Kernel", config_events);

static const struct ew_kernel_event winsat_events[] = {
    ROW_NAME(33, "WinSat/WinSPR"),
    ROW_NAME(35, "WinSat/Metrics"),
    ROW_NAME(37, "WinSat/SystemConfig"),
};
const struct ew_kernel_class ew_kernel_winsat =
    EW_KERNEL_CLASS("WinSat", "KernelTraceControl", winsat_events);

static const struct ew_kernel_event metadata_events[] = {
    ROW_NAME(32, "MetaData/EventInfo"),
    ROW_NAME(33, "MetaData/EventMapInfo"),
};
const struct ew_kernel_class ew_kernel_metadata =
    EW_KERNEL_CLASS("MetaData", "KernelTraceControl", metadata_events);
