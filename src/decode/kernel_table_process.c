/* SPDX-License-Identifier: MIT */
/*
 * Layouts of the classes Process, Thread and Image, with the names of the kernel's own class
 * descriptions (MOF); events have their PerfView names.
 */
#include "decode/kernel_table.h"

/* ------------------------------------------------------------------- Process */

#define PROCESS_IDS K(U32, ProcessId), K(U32, ParentId), K(U32, SessionId), K(I32, ExitStatus)

static const struct ew_kernel_item process_0[] = {K(SIZE, ProcessId), K(SIZE, ParentId),
                                                  K(SID, UserSID), K(ANSI, ImageFileName)};
static const struct ew_kernel_item process_1[] = {K(PTR, PageDirectoryBase), PROCESS_IDS,
                                                  K(SID, UserSID), K(ANSI, ImageFileName)};
static const struct ew_kernel_item process_2[] = {K(PTR, UniqueProcessKey), PROCESS_IDS,
                                                  K(SID, UserSID), K(ANSI, ImageFileName),
                                                  K(WIDE, CommandLine)};
static const struct ew_kernel_item process_3[] = {K(PTR, UniqueProcessKey),   PROCESS_IDS,
                                                  K(PTR, DirectoryTableBase), K(SID, UserSID),
                                                  K(ANSI, ImageFileName),     K(WIDE, CommandLine)};

#define PROCESS_4                                                                                \
    K(PTR, UniqueProcessKey), PROCESS_IDS, K(PTR, DirectoryTableBase), K(X32, Flags),            \
        K(SID, UserSID), K(ANSI, ImageFileName), K(WIDE, CommandLine), K(WIDE, PackageFullName), \
        K(WIDE, ApplicationId)

static const struct ew_kernel_item process_4[] = {PROCESS_4};
static const struct ew_kernel_item process_defunct_5[] = {PROCESS_4, K_ONLY(MAYEND),
                                                          K(TIME, ExitTime)};
static const struct ew_kernel_item process_terminate[] = {K(U32, ProcessId)};
static const struct ew_kernel_item process_counters[] = {
    K(U32, ProcessId),
    K(U32, PageFaultCount),
    K(U32, HandleCount),
    K(U32, Reserved),
    K(SIZE, PeakVirtualSize),
    K(SIZE, PeakWorkingSetSize),
    K(SIZE, PeakPagefileUsage),
    K(SIZE, QuotaPeakPagedPoolUsage),
    K(SIZE, QuotaPeakNonPagedPoolUsage),
    K(SIZE, VirtualSize),
    K(SIZE, WorkingSetSize),
    K(SIZE, PagefileUsage),
    K(SIZE, QuotaPagedPoolUsage),
    K(SIZE, QuotaNonPagedPoolUsage),
    K(SIZE, PrivatePageCount),
};
static const struct ew_kernel_item process_inswap[] = {K(PTR, DirectoryTableBase),
                                                       K(U32, ProcessId)};
static const struct ew_kernel_item process_wake[] = {K(PTR, Object), K(PTR, Tag), K(U32, ProcessId),
                                                     K(U32, Count)};
static const struct ew_kernel_item process_wake_event[] = {K(PTR, Object)};

#define PROCESS_ROWS(opcode, name)                                        \
    ROW(opcode, 0, name, process_0), ROW(opcode, 1, name, process_1),     \
        ROW(opcode, 2, name, process_2), ROW(opcode, 3, name, process_3), \
        ROW(opcode, 4, name, process_4)

static const struct ew_kernel_event process_events[] = {
    PROCESS_ROWS(1, "Process/Start"),
    PROCESS_ROWS(2, "Process/Stop"),
    PROCESS_ROWS(3, "Process/DCStart"),
    PROCESS_ROWS(4, "Process/DCStop"),
    PROCESS_ROWS(39, "Process/Defunct"),
    ROW(39, 5, "Process/Defunct", process_defunct_5),
    ROW(11, 0, "Process/Terminate", process_terminate),
    ROW(32, 0, "Process/PerfCtr", process_counters),
    ROW(33, 0, "Process/PerfCtrRundown", process_counters),
    ROW(35, 0, "Process/InSwap", process_inswap),
    ROW(48, 0, "Process/WakeChargeUser", process_wake),
    ROW(49, 0, "Process/WakeChargeExecution", process_wake),
    ROW(50, 0, "Process/WakeChargeKernel", process_wake),
    ROW(51, 0, "Process/WakeChargeInstrumentation", process_wake),
    ROW(52, 0, "Process/WakeChargePreserveProcess", process_wake),
    ROW(64, 0, "Process/WakeReleaseUser", process_wake),
    ROW(65, 0, "Process/WakeReleaseExecution", process_wake),
    ROW(66, 0, "Process/WakeReleaseKernel", process_wake),
    ROW(67, 0, "Process/WakeReleaseInstrumentation", process_wake),
    ROW(68, 0, "Process/WakeReleasePreserveProcess", process_wake),
    ROW(80, 0, "Process/WakeDropUser", process_wake),
    ROW(81, 0, "Process/WakeDropExecution", process_wake),
    ROW(82, 0, "Process/WakeDropKernel", process_wake),
    ROW(83, 0, "Process/WakeDropInstrumentation", process_wake),
    ROW(84, 0, "Process/WakeDropPreserveProcess", process_wake),
    ROW(96, 0, "Process/WakeEventUser", process_wake_event),
    ROW(97, 0, "Process/WakeEventExecution", process_wake_event),
    ROW(98, 0, "Process/WakeEventKernel", process_wake_event),
    ROW(99, 0, "Process/WakeEventInstrumentation", process_wake_event),
};
const struct ew_kernel_class ew_kernel_process =
    EW_KERNEL_CLASS("Process", "Windows Kernel", process_events);

/* -------------------------------------------------------------------- Thread */

#define THREAD_STACKS \
    K(PTR, StackBase), K(PTR, StackLimit), K(PTR, UserStackBase), K(PTR, UserStackLimit)

static const struct ew_kernel_item thread_0[] = {K(U32, TThreadId), K(U32, ProcessId)};
/* In this version the end event of a thread has only the ids. */
static const struct ew_kernel_item thread_1[] = {
    K(U32, ProcessId), K(U32, TThreadId),      K_ONLY(MAYEND), THREAD_STACKS,
    K(PTR, StartAddr), K(PTR, Win32StartAddr), K(I8, WaitMode)};
static const struct ew_kernel_item thread_2[] = {
    K(U32, ProcessId),      K(U32, TThreadId), THREAD_STACKS,        K(PTR, StartAddr),
    K(PTR, Win32StartAddr), K(PTR, TebBase),   K(U32, SubProcessTag)};
/* Windows 10 appends the name without a new version number. */
static const struct ew_kernel_item thread_3[] = {
    K(U32, ProcessId),      K(U32, TThreadId), THREAD_STACKS,         K(PTR, Affinity),
    K(PTR, Win32StartAddr), K(PTR, TebBase),   K(U32, SubProcessTag), K(U8, BasePriority),
    K(U8, PagePriority),    K(U8, IoPriority), K(X8, ThreadFlags),    K_ONLY(MAYEND),
    K(WIDE, ThreadName)};

#define SWITCH_PRIORITIES \
    K(U32, NewThreadId), K(U32, OldThreadId), K(I8, NewThreadPriority), K(I8, OldThreadPriority)

static const struct ew_kernel_item thread_switch_1[] = {SWITCH_PRIORITIES,
                                                        K(I8, NewThreadQuantum),
                                                        K(I8, OldThreadQuantum),
                                                        K(I8, OldThreadWaitReason),
                                                        K(I8, OldThreadWaitMode),
                                                        K(I8, OldThreadState),
                                                        K(I8, OldThreadWaitIdealProcessor)};
static const struct ew_kernel_item thread_switch_2[] = {SWITCH_PRIORITIES,
                                                        K(U8, PreviousCState),
                                                        K(I8, SpareByte),
                                                        K(I8, OldThreadWaitReason),
                                                        K(I8, OldThreadWaitMode),
                                                        K(I8, OldThreadState),
                                                        K(I8, OldThreadWaitIdealProcessor),
                                                        K(U32, NewThreadWaitTime),
                                                        K(U32, Reserved)};
/* The byte of the wait mode has further bits: it is reported alone and as a whole. */
static const struct ew_kernel_item thread_switch_3[] = {SWITCH_PRIORITIES,
                                                        K(U8, PreviousCState),
                                                        K(I8, SpareByte),
                                                        K(I8, OldThreadWaitReason),
                                                        K_TWO(BITS, OldThreadWaitMode, 0, 1),
                                                        K(X8, ThreadFlags),
                                                        K(I8, OldThreadState),
                                                        K(I8, OldThreadWaitIdealProcessor),
                                                        K(U32, NewThreadWaitTime),
                                                        K(U32, Reserved)};
static const struct ew_kernel_item thread_spinlock[] = {K(PTR, SpinLockAddress),
                                                        K(PTR, CallerAddress),
                                                        K(U64, AcquireTime),
                                                        K(U64, ReleaseTime),
                                                        K(U32, WaitTimeInCycles),
                                                        K(U32, SpinCount),
                                                        K(U32, ThreadId),
                                                        K(U32, InterruptCount),
                                                        K(U8, Irql),
                                                        K(U8, AcquireDepth),
                                                        K(X8, Flag),
                                                        K_ARG(BYTES, Reserved, 5)};
static const struct ew_kernel_item thread_priority[] = {K(U32, ThreadId), K(U8, OldPriority),
                                                        K(U8, NewPriority), K(U16, Reserved)};
static const struct ew_kernel_item thread_ready[] = {
    K(U32, TThreadId), K(I8, AdjustReason), K(I8, AdjustIncrement), K(X8, Flag), K(I8, Reserved)};
static const struct ew_kernel_item thread_affinity[] = {K(PTR, Affinity), K(U32, ThreadId),
                                                        K(U16, Group), K(U16, Reserved)};
static const struct ew_kernel_item thread_worker[] = {K(U32, TThreadId), K(U64, StartTime),
                                                      K(PTR, ThreadRoutine)};
static const struct ew_kernel_item thread_starvation[] = {K(U32, ThreadId), K(U16, ProcessorIndex),
                                                          K(U8, Priority), K(U8, Reserved)};
static const struct ew_kernel_item thread_migration[] = {
    K(U32, ThreadId), K(U16, SourceProcessorIndex),  K(U16, TargetProcessorIndex),
    K(U8, Priority),  K(BOOL, IdealProcessorAdjust), K(U16, OldIdealProcessorIndex)};
static const struct ew_kernel_item thread_enqueue[] = {K(PTR, Entry), K(U32, ThreadId)};
static const struct ew_kernel_item thread_dequeue[] = {K(U32, ThreadId), K_ARG(U32, EntryCount, 1),
                                                       K_TWO(LIST, Entries, 1, 1), K(PTR, Entries)};
static const struct ew_kernel_item thread_callback[] = {K(PTR, CallbackRoutine)};
static const struct ew_kernel_item thread_boost_set[] = {
    K(PTR, Lock),          K(U32, ThreadId),    K(U8, NewCpuPriorityFloor),
    K(U8, OldCpuPriority), K(X8, IoPriorities), K(X8, BoostFlags)};
static const struct ew_kernel_item thread_boost_clear[] = {K(PTR, LockAddress), K(U32, ThreadId),
                                                           K(U16, BoostBitmap), K(U16, Reserved)};
static const struct ew_kernel_item thread_boost_exhaustion[] = {K(PTR, LockAddress),
                                                                K(U32, ThreadId)};
static const struct ew_kernel_item thread_tag[] = {K(U32, OldTag), K(U32, NewTag)};
static const struct ew_kernel_item thread_name[] = {K(U32, ProcessId), K(U32, ThreadId),
                                                    K(WIDE, ThreadName)};

#define THREAD_ROWS(opcode, name)                                   \
    ROW(opcode, 0, name, thread_0), ROW(opcode, 1, name, thread_1), \
        ROW(opcode, 2, name, thread_2), ROW(opcode, 3, name, thread_3)

static const struct ew_kernel_event thread_events[] = {
    ROW(36, 0, "Thread/CSwitch", thread_switch_1),
    ROW(36, 2, "Thread/CSwitch", thread_switch_2),
    ROW(36, 3, "Thread/CSwitch", thread_switch_3),
    ROW(50, 0, "Dispatcher/ReadyThread", thread_ready),
    THREAD_ROWS(1, "Thread/Start"),
    THREAD_ROWS(2, "Thread/Stop"),
    THREAD_ROWS(3, "Thread/DCStart"),
    THREAD_ROWS(4, "Thread/DCStop"),
    ROW_NAME(37, "Thread/CompCS"),
    ROW(41, 0, "Thread/SpinLock", thread_spinlock),
    ROW(48, 0, "Thread/SetPriority", thread_priority),
    ROW(49, 0, "Thread/SetBasePriority", thread_priority),
    ROW(51, 0, "Thread/SetPagePriority", thread_priority),
    ROW(52, 0, "Thread/SetIoPriority", thread_priority),
    ROW(53, 0, "Thread/ThreadAffinity", thread_affinity),
    ROW(57, 0, "Thread/WorkerThread", thread_worker),
    ROW(60, 0, "Thread/AntiStarvationBoost", thread_starvation),
    ROW(61, 0, "Thread/ThreadMigration", thread_migration),
    ROW(62, 0, "Thread/Enqueue", thread_enqueue),
    ROW(63, 0, "Thread/Dequeue", thread_dequeue),
    ROW(64, 0, "Thread/WorkerThreadStart", thread_callback),
    ROW(65, 0, "Thread/WorkerThreadStop", thread_callback),
    ROW(66, 0, "Thread/AutoBoostSetFloor", thread_boost_set),
    ROW(67, 0, "Thread/AutoBoostClearFloor", thread_boost_clear),
    ROW(68, 0, "Thread/AutoBoostEntryExhaustion", thread_boost_exhaustion),
    ROW(69, 0, "Thread/SubProcessTagChanged", thread_tag),
    ROW(72, 0, "Thread/SetName", thread_name),
};
const struct ew_kernel_class ew_kernel_thread =
    EW_KERNEL_CLASS("Thread", "Windows Kernel", thread_events);

/* --------------------------------------------------------------------- Image */

#define IMAGE_TAIL                                                                \
    K(PTR, DefaultBase), K(U32, Reserved1), K(U32, Reserved2), K(U32, Reserved3), \
        K(U32, Reserved4), K(WIDE, FileName)

static const struct ew_kernel_item image_0[] = {K(PTR, BaseAddress), K(U32, ModuleSize),
                                                K(WIDE, ImageFileName)};
static const struct ew_kernel_item image_1[] = {K(PTR, ImageBase), K(SIZE, ImageSize),
                                                K(U32, ProcessId), K(WIDE, FileName)};
static const struct ew_kernel_item image_2[] = {
    K(PTR, ImageBase),     K(SIZE, ImageSize), K(U32, ProcessId), K(U32, ImageChecksum),
    K(U32, TimeDateStamp), K(U32, Reserved0),  IMAGE_TAIL};
static const struct ew_kernel_item image_3[] = {
    K(PTR, ImageBase),     K(SIZE, ImageSize),    K(U32, ProcessId),
    K(U32, ImageChecksum), K(U32, TimeDateStamp), K(U8, SignatureLevel),
    K(U8, SignatureType),  K(U16, Reserved0),     IMAGE_TAIL};
static const struct ew_kernel_item image_kernel_base[] = {K(PTR, ImageBase)};
static const struct ew_kernel_item image_hypercall[] = {K(PTR, HypercallPageVa)};
static const struct ew_kernel_item image_base[] = {K(X64, BaseAddress)};
static const struct ew_kernel_item image_coded[] = {K(X64, BaseAddress), K(U8, ErrorOpcode),
                                                    K(I8, Code), K(WIDE, String)};
static const struct ew_kernel_item image_coded_path[] = {
    K(X64, BaseAddress), K(U8, ErrorOpcode), K(I8, Code), K(WIDE, String1), K(WIDE, String2)};
static const struct ew_kernel_item image_new_dll[] = {
    K(PTR, NewDllBaseAddress), K(PTR, ParentDllBaseAddress), K(U32, LoadReason), K(WIDE, FilePath)};
static const struct ew_kernel_item image_search[] = {K(X32, LdrLoadFlags), K(X32, LdrSearchFlags),
                                                     K(X32, SearchInfo), K(U32, LoadReason),
                                                     K(WIDE, FullDllName)};
static const struct ew_kernel_item image_search_path[] = {
    K(X32, SearchInfo), K(WIDE, Cwd), K(WIDE, AppDir), K(WIDE, DllDir), K(WIDE, DllLoadDir)};

#define IMAGE_ROWS(opcode, name)                                                                 \
    ROW(opcode, 0, name, image_0), ROW(opcode, 1, name, image_1), ROW(opcode, 2, name, image_2), \
        ROW(opcode, 3, name, image_3)

static const struct ew_kernel_event image_events[] = {
    IMAGE_ROWS(10, "Image/Load"),
    IMAGE_ROWS(2, "Image/Unload"),
    IMAGE_ROWS(3, "Image/DCStart"),
    IMAGE_ROWS(4, "Image/DCStop"),
    ROW(33, 0, "Image/KernelBase", image_kernel_base),
    ROW(34, 0, "Image/HypercallPage", image_hypercall),
    ROW_EMPTY(128, "Image/LoaderLockAttempt"),
    ROW_EMPTY(129, "Image/LoaderLockAcquire"),
    ROW_EMPTY(130, "Image/LoaderLockTriedAndFailed"),
    ROW_EMPTY(131, "Image/LoaderLockWait"),
    ROW_EMPTY(132, "Image/ProcessInitDone"),
    ROW_EMPTY(133, "Image/CreateSectionBegin"),
    ROW_EMPTY(134, "Image/CreateSectionEnd"),
    ROW_EMPTY(135, "Image/MapViewBegin"),
    ROW(144, 0, "Image/RelocateImageBegin", image_base),
    ROW(145, 0, "Image/RelocateImageEnd", image_base),
    ROW(146, 0, "Image/HandleOldDescsBegin", image_base),
    ROW(147, 0, "Image/HandleOldDescsEnd", image_base),
    ROW(148, 0, "Image/HandleNewDescsBegin", image_base),
    ROW(149, 0, "Image/HandleNewDescsEnd", image_base),
    ROW(150, 0, "Image/DllMainExit", image_base),
    ROW(160, 0, "Image/FindDllByName", image_coded),
    ROW(161, 0, "Image/MapViewEnd", image_coded),
    ROW(162, 0, "Image/LoaderLockRelease", image_coded),
    ROW(163, 0, "Image/DllMainEnter", image_coded),
    ROW(164, 0, "Image/LoaderError", image_coded),
    ROW(165, 0, "Image/MapViewStart", image_coded),
    ROW(166, 0, "Image/SnappingStart", image_coded),
    ROW(167, 0, "Image/SnappingEnd", image_coded),
    ROW(168, 0, "Image/LoadingStart", image_coded),
    ROW(169, 0, "Image/LoadingEnd", image_coded),
    ROW(170, 0, "Image/FoundKnownDll", image_coded),
    ROW(171, 0, "Image/AbnormalTermination", image_coded),
    ROW(172, 0, "Image/ModulePlaceHolder", image_coded),
    ROW(173, 0, "Image/ReadyToInit", image_coded),
    ROW(174, 0, "Image/ReadyToRun", image_coded),
    ROW(176, 0, "Image/NewDllLoad", image_new_dll),
    ROW(177, 0, "Image/NewDllLoadAsData", image_new_dll),
    ROW(192, 0, "Image/DllSearchPathExternal", image_coded_path),
    ROW(193, 0, "Image/DllSearchPathInternal", image_coded_path),
    ROW(208, 0, "Image/ApiSetResolving", image_coded),
    ROW(209, 0, "Image/ApiSetHosted", image_coded),
    ROW(210, 0, "Image/ApiSetUnhosted", image_coded),
    ROW(211, 0, "Image/ApiSetUnresolved", image_coded),
    ROW(212, 0, "Image/DllSearchResults", image_search),
    ROW(213, 0, "Image/DllPathSearchResults", image_search_path),
};
const struct ew_kernel_class ew_kernel_image =
    EW_KERNEL_CLASS("Image", "Windows Kernel", image_events);
