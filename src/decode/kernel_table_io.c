/* SPDX-License-Identifier: MIT */
/* Layouts of the classes DiskIo, FileIo, Registry and SplitIo. */
#include "decode/kernel_table.h"

/* -------------------------------------------------------------------- DiskIo */

#define DISK_HEAD K(U32, DiskNumber), K(X32, IrpFlags), K(U32, TransferSize)
#define DISK_TAIL K(U64, ByteOffset), K(PTR, FileObject)

static const struct ew_kernel_item disk_0[] = {DISK_HEAD, K(U32, Reserved), DISK_TAIL};
static const struct ew_kernel_item disk_1[] = {DISK_HEAD, K(U32, ResponseTime), DISK_TAIL,
                                               K(U64, HighResResponseTime)};
static const struct ew_kernel_item disk_2[] = {DISK_HEAD, K(U32, Reserved), DISK_TAIL, K(PTR, Irp),
                                               K(U64, HighResResponseTime)};
static const struct ew_kernel_item disk_3[] = {DISK_HEAD,
                                               K(U32, Reserved),
                                               DISK_TAIL,
                                               K(PTR, Irp),
                                               K(U64, HighResResponseTime),
                                               K(U32, IssuingThreadId)};
static const struct ew_kernel_item disk_init[] = {K(PTR, Irp)};
static const struct ew_kernel_item disk_init_3[] = {K(PTR, Irp), K(U32, IssuingThreadId)};
static const struct ew_kernel_item disk_flush[] = {K(U32, DiskNumber), K(X32, IrpFlags),
                                                   K(U64, HighResResponseTime), K(PTR, Irp)};
static const struct ew_kernel_item disk_flush_3[] = {K(U32, DiskNumber), K(X32, IrpFlags),
                                                     K(U64, HighResResponseTime), K(PTR, Irp),
                                                     K(U32, IssuingThreadId)};
static const struct ew_kernel_item driver_call_1[] = {K(U32, UniqMatchId),   K(PTR, RoutineAddr),
                                                      K(PTR, Irp),           K(U32, MajorFunction),
                                                      K(U32, MinorFunction), K(PTR, FileObject)};
static const struct ew_kernel_item driver_call[] = {K(U32, MajorFunction), K(U32, MinorFunction),
                                                    K(PTR, RoutineAddr),   K(PTR, FileObject),
                                                    K(PTR, Irp),           K(U32, UniqMatchId)};
static const struct ew_kernel_item driver_return_1[] = {K(U32, UniqMatchId), K(PTR, Irp)};
static const struct ew_kernel_item driver_return[] = {K(PTR, Irp), K(U32, UniqMatchId)};
static const struct ew_kernel_item driver_completion[] = {K(PTR, Routine), K(PTR, IrpPtr),
                                                          K(U32, UniqMatchId)};
static const struct ew_kernel_item driver_complete[] = {K(PTR, RoutineAddr), K(PTR, Irp),
                                                        K(U32, UniqMatchId)};

#define DISK_ROWS(opcode, name)                                                               \
    ROW(opcode, 0, name, disk_0), ROW(opcode, 1, name, disk_1), ROW(opcode, 2, name, disk_2), \
        ROW(opcode, 3, name, disk_3)
#define DISK_INIT_ROWS(opcode, name) \
    ROW(opcode, 0, name, disk_init), ROW(opcode, 3, name, disk_init_3)
#define DISK_FLUSH_ROWS(opcode, name) \
    ROW(opcode, 0, name, disk_flush), ROW(opcode, 3, name, disk_flush_3)

static const struct ew_kernel_event disk_events[] = {
    DISK_ROWS(10, "DiskIO/Read"),
    DISK_ROWS(11, "DiskIO/Write"),
    DISK_INIT_ROWS(12, "DiskIO/ReadInit"),
    DISK_INIT_ROWS(13, "DiskIO/WriteInit"),
    DISK_FLUSH_ROWS(14, "DiskIO/FlushBuffers"),
    DISK_INIT_ROWS(15, "DiskIO/FlushInit"),
    ROW(34, 0, "DiskIO/DriverMajorFunctionCall", driver_call_1),
    ROW(34, 2, "DiskIO/DriverMajorFunctionCall", driver_call),
    ROW(35, 0, "DiskIO/DriverMajorFunctionReturn", driver_return_1),
    ROW(35, 2, "DiskIO/DriverMajorFunctionReturn", driver_return),
    ROW(37, 0, "DiskIO/DriverCompletionRoutine", driver_completion),
    ROW(52, 0, "DiskIO/DriverCompleteRequest", driver_complete),
    ROW(53, 0, "DiskIO/DriverCompleteRequestReturn", driver_return),
    DISK_ROWS(55, "DiskIO/OpticalRead"),
    DISK_ROWS(56, "DiskIO/OpticalWrite"),
    DISK_FLUSH_ROWS(57, "DiskIO/OpticalFlushBuffers"),
    DISK_INIT_ROWS(58, "DiskIO/OpticalReadInit"),
    DISK_INIT_ROWS(59, "DiskIO/OpticalWriteInit"),
    DISK_INIT_ROWS(60, "DiskIO/OpticalFlushInit"),
};
const struct ew_kernel_class ew_kernel_diskio =
    EW_KERNEL_CLASS("DiskIO", "Windows Kernel", disk_events);

static const struct ew_kernel_item split_io[] = {K(PTR, ParentIrp), K(PTR, ChildIrp)};
static const struct ew_kernel_event split_events[] = {ROW(32, 0, "SplitIo/VolMgr", split_io)};
const struct ew_kernel_class ew_kernel_splitio =
    EW_KERNEL_CLASS("SplitIo", "Windows Kernel", split_events);

/* -------------------------------------------------------------------- FileIo */

/* Up to version 2 the thread id is as wide as a pointer and comes second; from version 3 on it has
 * four bytes and follows the pointers. */
#define FILE_2 K(PTR, IrpPtr), K(SIZE, TTID), K(PTR, FileObject)
#define FILE_3 K(PTR, IrpPtr), K(PTR, FileObject), K(PTR, FileKey)

static const struct ew_kernel_item file_name[] = {K(PTR, FileObject), K(WIDE, FileName)};
static const struct ew_kernel_item file_create[] = {
    FILE_2, K(X32, CreateOptions), K(X32, FileAttributes), K(X32, ShareAccess), K(WIDE, OpenPath)};
static const struct ew_kernel_item file_create_3[] = {
    K(PTR, IrpPtr),         K(PTR, FileObject),  K(U32, TTID),     K(X32, CreateOptions),
    K(X32, FileAttributes), K(X32, ShareAccess), K(WIDE, OpenPath)};
static const struct ew_kernel_item file_simple[] = {FILE_2, K(PTR, FileKey)};
static const struct ew_kernel_item file_simple_3[] = {FILE_3, K(U32, TTID)};
static const struct ew_kernel_item file_transfer[] = {K(U64, Offset), FILE_2, K(PTR, FileKey),
                                                      K(U32, IoSize), K(X32, IoFlags)};
static const struct ew_kernel_item file_transfer_3[] = {K(U64, Offset), FILE_3, K(U32, TTID),
                                                        K(U32, IoSize), K(X32, IoFlags)};
static const struct ew_kernel_item file_info[] = {FILE_2, K(PTR, FileKey), K(PTR, ExtraInfo),
                                                  K(U32, InfoClass)};
static const struct ew_kernel_item file_info_3[] = {FILE_3, K(PTR, ExtraInfo), K(U32, TTID),
                                                    K(U32, InfoClass)};
static const struct ew_kernel_item file_path_3[] = {FILE_3, K(PTR, ExtraInfo), K(U32, TTID),
                                                    K(U32, InfoClass), K(WIDE, FileName)};
static const struct ew_kernel_item file_directory[] = {
    FILE_2,           K(PTR, FileKey), K(U32, Length), K(U32, InfoClass), K(U32, FileIndex),
    K(WIDE, FileName)};
static const struct ew_kernel_item file_directory_3[] = {
    FILE_3, K(U32, TTID), K(U32, Length), K(U32, InfoClass), K(U32, FileIndex), K(WIDE, FileName)};
static const struct ew_kernel_item file_end[] = {K(PTR, IrpPtr), K(PTR, ExtraInfo),
                                                 K(X32, NtStatus)};
static const struct ew_kernel_item file_map[] = {
    K(PTR, ViewBase), K(PTR, FileObject), K(X64, MiscInfo), K(SIZE, ViewSize), K(U32, ProcessId)};

#define FILE_FILTER                                                               \
    K(PTR, RoutineAddr), K(PTR, FileObject), K(PTR, FileContext), K(PTR, IrpPtr), \
        K(PTR, CallbackDataPtr), K(U32, MajorFunction)

static const struct ew_kernel_item file_filter[] = {FILE_FILTER};
static const struct ew_kernel_item file_filter_done[] = {K(U64, InitialTime), FILE_FILTER};
static const struct ew_kernel_item file_filter_failed[] = {FILE_FILTER, K(X32, Status)};

#define FILE_ROWS(opcode, name, before, from_3) \
    ROW(opcode, 0, name, before), ROW(opcode, 3, name, from_3)

static const struct ew_kernel_event file_events[] = {
    FILE_ROWS(67, "FileIO/Read", file_transfer, file_transfer_3),
    FILE_ROWS(68, "FileIO/Write", file_transfer, file_transfer_3),
    ROW(0, 0, "FileIO/Name", file_name),
    ROW(32, 0, "FileIO/FileCreate", file_name),
    ROW(35, 0, "FileIO/FileDelete", file_name),
    ROW(36, 0, "FileIO/FileRundown", file_name),
    ROW(37, 0, "FileIO/MapFile", file_map),
    ROW(38, 0, "FileIO/UnmapFile", file_map),
    ROW(39, 0, "FileIO/MapFileDCStart", file_map),
    ROW(40, 0, "FileIO/MapFileDCStop", file_map),
    FILE_ROWS(64, "FileIO/Create", file_create, file_create_3),
    FILE_ROWS(65, "FileIO/Cleanup", file_simple, file_simple_3),
    FILE_ROWS(66, "FileIO/Close", file_simple, file_simple_3),
    FILE_ROWS(69, "FileIO/SetInfo", file_info, file_info_3),
    FILE_ROWS(70, "FileIO/Delete", file_info, file_info_3),
    FILE_ROWS(71, "FileIO/Rename", file_info, file_info_3),
    FILE_ROWS(72, "FileIO/DirEnum", file_directory, file_directory_3),
    FILE_ROWS(73, "FileIO/Flush", file_simple, file_simple_3),
    FILE_ROWS(74, "FileIO/QueryInfo", file_info, file_info_3),
    FILE_ROWS(75, "FileIO/FSControl", file_info, file_info_3),
    ROW(76, 0, "FileIO/OperationEnd", file_end),
    FILE_ROWS(77, "FileIO/DirNotify", file_directory, file_directory_3),
    ROW(79, 0, "FileIO/DeletePath", file_path_3),
    ROW(80, 0, "FileIO/RenamePath", file_path_3),
    ROW(81, 0, "FileIO/SetLinkPath", file_path_3),
    ROW(96, 0, "FileIO/PreOpInit", file_filter),
    ROW(97, 0, "FileIO/PostOpInit", file_filter),
    ROW(98, 0, "FileIO/PreOpCompletion", file_filter_done),
    ROW(99, 0, "FileIO/PostOpCompletion", file_filter_done),
    ROW(100, 0, "FileIO/PreOpFailure", file_filter_failed),
    ROW(101, 0, "FileIO/PostOpFailure", file_filter_failed),
};
const struct ew_kernel_class ew_kernel_fileio =
    EW_KERNEL_CLASS("FileIO", "Windows Kernel", file_events);

/* ------------------------------------------------------------------ Registry */

static const struct ew_kernel_item registry_0[] = {K(PTR, Status), K(PTR, KeyHandle),
                                                   K(I64, ElapsedTime), K(WIDE, KeyName)};
static const struct ew_kernel_item registry_1[] = {
    K(PTR, Status), K(PTR, KeyHandle), K(I64, ElapsedTime), K(U32, Index), K(WIDE, KeyName)};
static const struct ew_kernel_item registry_2[] = {
    K(I64, InitialTime), K(X32, Status), K(U32, Index), K(PTR, KeyHandle), K(WIDE, KeyName)};
static const struct ew_kernel_item registry_transaction[] = {
    K(GUID, TxrGUID), K(X32, Status), K(U32, UowCount), K(U64, OperationTime), K(WIDE, Hive)};
static const struct ew_kernel_item registry_counters[] = {
    K(U64, Counter1), K(U64, Counter2),  K(U64, Counter3), K(U64, Counter4),
    K(U64, Counter5), K(U64, Counter6),  K(U64, Counter7), K(U64, Counter8),
    K(U64, Counter9), K(U64, Counter10), K(U64, Counter11)};
static const struct ew_kernel_item registry_config[] = {K(U32, CurrentControlSet)};
static const struct ew_kernel_item registry_hive_init[] = {
    K(PTR, Hive), K(U32, OperationType), K(X32, PoolTag), K(U32, Size), K(WIDE, FileName)};
static const struct ew_kernel_item registry_hive_destroy[] = {K(PTR, Hive), K(WIDE, FileName),
                                                              K(WIDE, Path)};
static const struct ew_kernel_item registry_hive_link[] = {K(PTR, Hive), K(WIDE, Path)};
static const struct ew_kernel_item registry_hive_rundown[] = {
    K(U64, Size), K(PTR, Hive), K(U32, LoadedKeyCount), K(WIDE, FileName), K(WIDE, LinkPath)};
static const struct ew_kernel_item registry_hive_dirty[] = {K(PTR, Hive), K(WIDE, LinkPath),
                                                            K(U32, DirtyReason)};
static const struct ew_kernel_item registry_notify[] = {
    K(PTR, Notification), K(PTR, KeyHandle), K(U8, Type), K(BOOL, WatchSubtree), K(BOOL, Primary)};

#define REGISTRY_ROWS(opcode, name)                                     \
    ROW(opcode, 0, name, registry_0), ROW(opcode, 1, name, registry_1), \
        ROW(opcode, 2, name, registry_2)

static const struct ew_kernel_event registry_events[] = {
    REGISTRY_ROWS(10, "Registry/Create"),
    REGISTRY_ROWS(11, "Registry/Open"),
    REGISTRY_ROWS(12, "Registry/Delete"),
    REGISTRY_ROWS(13, "Registry/Query"),
    REGISTRY_ROWS(14, "Registry/SetValue"),
    REGISTRY_ROWS(15, "Registry/DeleteValue"),
    REGISTRY_ROWS(16, "Registry/QueryValue"),
    REGISTRY_ROWS(17, "Registry/EnumerateKey"),
    REGISTRY_ROWS(18, "Registry/EnumerateValueKey"),
    REGISTRY_ROWS(19, "Registry/QueryMultipleValue"),
    REGISTRY_ROWS(20, "Registry/SetInformation"),
    REGISTRY_ROWS(21, "Registry/Flush"),
    REGISTRY_ROWS(22, "Registry/KCBCreate"),
    REGISTRY_ROWS(23, "Registry/KCBDelete"),
    REGISTRY_ROWS(24, "Registry/KCBRundownBegin"),
    REGISTRY_ROWS(25, "Registry/KCBRundownEnd"),
    REGISTRY_ROWS(26, "Registry/Virtualize"),
    REGISTRY_ROWS(27, "Registry/Close"),
    REGISTRY_ROWS(28, "Registry/SetSecurity"),
    REGISTRY_ROWS(29, "Registry/QuerySecurity"),
    ROW(30, 0, "Registry/TxRCommit", registry_transaction),
    ROW(31, 0, "Registry/TxRPrepare", registry_transaction),
    ROW(32, 0, "Registry/TxRRollback", registry_transaction),
    ROW(34, 0, "Registry/Counters", registry_counters),
    ROW(35, 0, "Registry/Config", registry_config),
    ROW(36, 0, "Registry/HiveInit", registry_hive_init),
    ROW(37, 0, "Registry/HiveDestroy", registry_hive_destroy),
    ROW(38, 0, "Registry/HiveLink", registry_hive_link),
    ROW(39, 0, "Registry/HiveDCEnd", registry_hive_rundown),
    ROW(40, 0, "Registry/HiveDirty", registry_hive_dirty),
    ROW(48, 0, "Registry/ChangeNotify", registry_notify),
};
const struct ew_kernel_class ew_kernel_registry =
    EW_KERNEL_CLASS("Registry", "Windows Kernel", registry_events);
