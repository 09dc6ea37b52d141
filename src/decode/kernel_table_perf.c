/* SPDX-License-Identifier: MIT */
/* Layouts of the classes PerfInfo, StackWalk and PageFault (which PerfView calls Memory). */
#include "decode/kernel_table.h"

/* ------------------------------------------------------------------ PerfInfo */

static const struct ew_kernel_item perf_sample_1[] = {K(PTR, InstructionPointer), K(U32, ThreadId),
                                                      K(U16, Count)};
/* The field that the class descriptions call reserved holds the state of the CPU. */
static const struct ew_kernel_item perf_sample_2[] = {K(PTR, InstructionPointer),
                                                      K(U32, ThreadId),
                                                      K(U16, Count),
                                                      K_ARG(FLAG, ExecutingDPC, 0),
                                                      K_ARG(FLAG, ExecutingISR, 1),
                                                      K_TWO(BITS, Priority, 3, 5),
                                                      K_TWO(BITS, Rank, 8, 8),
                                                      K(U16, Reserved)};
static const struct ew_kernel_item perf_sample_batch[] = {K_ARG(U32, EntryCount, 1),
                                                          K_TWO(LIST, Entries, 4, 1),
                                                          K(PTR, InstructionPointer),
                                                          K(U32, ThreadId),
                                                          K(U16, Count),
                                                          K(U16, Reserved)};
static const struct ew_kernel_item perf_pmc_sample[] = {
    K(PTR, InstructionPointer), K(U32, ThreadId), K(U16, ProfileSource), K(U16, Reserved)};
static const struct ew_kernel_item perf_pmc_config[] = {
    K_ARG(U32, CounterCount, 1), K_TWO(LIST, CounterName, 1, 1), K(WIDE, CounterName)};
static const struct ew_kernel_item perf_pmc_corruption[] = {
    K(U32, ProcessorNumber), K_ARG(U32, CounterCount, 1), K_TWO(LIST, CounterStatus, 2, 1),
    K(U32, ProfileSource), K(U64, LastKnownGoodTimestamp)};
static const struct ew_kernel_item perf_interval[] = {K(U32, Source), K(U32, NewInterval),
                                                      K(U32, OldInterval)};
static const struct ew_kernel_item perf_interval_3[] = {
    K(U32, Source), K(U32, NewInterval), K(U32, OldInterval), K_ONLY(MAYEND), K(WIDE, SourceName)};
static const struct ew_kernel_item perf_spin_config[] = {
    K(U32, SpinLockSpinThreshold), K(U32, SpinLockContentionSampleRate),
    K(U32, SpinLockAcquireSampleRate), K_ONLY(MAYEND), K(U32, SpinLockHoldThreshold)};
/* The time has eight bytes even with 32-bit pointers. */
static const struct ew_kernel_item perf_dpc[] = {K(U64, InitialTime), K(PTR, Routine)};
static const struct ew_kernel_item perf_isr_1[] = {K(U64, InitialTime), K(PTR, Routine),
                                                   K(U32, ReturnValue)};
static const struct ew_kernel_item perf_isr[] = {
    K(U64, InitialTime), K(PTR, Routine), K(U8, ReturnValue), K(U16, Vector), K(U8, Reserved)};
static const struct ew_kernel_item perf_isr_msi[] = {K(U64, InitialTime), K(PTR, Routine),
                                                     K(U8, ReturnValue),  K(U16, Vector),
                                                     K(U8, Reserved),     K(U32, MessageNumber)};
static const struct ew_kernel_item perf_isr_unexpected[] = {K(U16, Vector)};
static const struct ew_kernel_item perf_routine[] = {K(PTR, Routine)};
static const struct ew_kernel_item perf_enter[] = {K(PTR, SysCallAddress)};
static const struct ew_kernel_item perf_exit[] = {K(X32, SysCallNtStatus)};
static const struct ew_kernel_item perf_mark[] = {K(ANSI, Message)};
static const struct ew_kernel_item perf_io_timer[] = {K(PTR, DeviceObject), K(PTR, TimerRoutine)};
static const struct ew_kernel_item perf_timer_set[] = {
    K(U64, DueTime),  K(U64, MaximumDueTime),  K(U64, Period),   K(PTR, Timer),
    K(PTR, Callback), K(PTR, CallbackContext), K(X8, TimerFlags)};
static const struct ew_kernel_item perf_timer[] = {K(PTR, Timer)};
static const struct ew_kernel_item perf_timer_off[] = {K(PTR, Timer), K(PTR, DisableCallback),
                                                       K(PTR, DisableContext), K_ONLY(MAYEND),
                                                       K(X8, TimerFlags)};

static const struct ew_kernel_event perf_events[] = {
    ROW(46, 0, "PerfInfo/Sample", perf_sample_1),
    ROW(46, 2, "PerfInfo/Sample", perf_sample_2),
    ROW(34, 0, "PerfInfo/Mark", perf_mark),
    ROW(47, 0, "PerfInfo/PMCSample", perf_pmc_sample),
    ROW(48, 0, "PerfInfo/PmcCtrConfig", perf_pmc_config),
    ROW(49, 0, "PerfInfo/PmcCtrCorruption", perf_pmc_corruption),
    ROW(50, 0, "PerfInfo/ISR", perf_isr_msi),
    ROW(51, 0, "PerfInfo/SysClEnter", perf_enter),
    ROW(52, 0, "PerfInfo/SysClExit", perf_exit),
    ROW(55, 0, "PerfInfo/BatchedSample", perf_sample_batch),
    ROW_EMPTY(58, "PerfInfo/DebuggerEnabled"),
    ROW(66, 0, "PerfInfo/ThreadedDPC", perf_dpc),
    ROW(67, 0, "PerfInfo/ISR", perf_isr_1),
    ROW(67, 2, "PerfInfo/ISR", perf_isr),
    ROW(68, 0, "PerfInfo/DPC", perf_dpc),
    ROW(69, 0, "PerfInfo/TimerDPC", perf_dpc),
    ROW(70, 0, "PerfInfo/IOTimer", perf_dpc),
    ROW(72, 0, "PerfInfo/SetInterval", perf_interval),
    ROW(72, 3, "PerfInfo/SetInterval", perf_interval_3),
    ROW(73, 0, "PerfInfo/CollectionStart", perf_interval),
    ROW(73, 3, "PerfInfo/CollectionStart", perf_interval_3),
    ROW(74, 0, "PerfInfo/CollectionEnd", perf_interval),
    ROW(74, 3, "PerfInfo/CollectionEnd", perf_interval_3),
    ROW(75, 0, "PerfInfo/CollectionStartSecond", perf_spin_config),
    ROW(76, 0, "PerfInfo/CollectionEndSecond", perf_spin_config),
    ROW(92, 0, "PerfInfo/ISR-Unexpected", perf_isr_unexpected),
    ROW(93, 0, "PerfInfo/IoStartTimer", perf_io_timer),
    ROW(94, 0, "PerfInfo/IoStopTimer", perf_io_timer),
    ROW(95, 0, "PerfInfo/ISR-PASS", perf_isr_1),
    ROW(95, 2, "PerfInfo/ISR-PASS", perf_isr),
    ROW(96, 0, "PerfInfo/WdfISR", perf_routine),
    ROW(97, 0, "PerfInfo/WdfPassiveISR", perf_routine),
    ROW(98, 0, "PerfInfo/WdfDPC", perf_routine),
    ROW(103, 0, "PerfInfo/WdfWorkItem", perf_routine),
    ROW(104, 0, "PerfInfo/SetKTimer2", perf_timer_set),
    ROW(105, 0, "PerfInfo/ExpireKTimer2", perf_timer_set),
    ROW(106, 0, "PerfInfo/CancelKTimer2", perf_timer),
    ROW(107, 0, "PerfInfo/DisableKTimer2", perf_timer_off),
    ROW(108, 0, "PerfInfo/FinalizeKTimer2", perf_timer_off),
};
const struct ew_kernel_class ew_kernel_perfinfo =
    EW_KERNEL_CLASS("PerfInfo", "Windows Kernel", perf_events);

/* ----------------------------------------------------------------- StackWalk */

#define STACK_OF K(U64, EventTimeStamp), K(U32, StackProcess), K(U32, StackThread)

static const struct ew_kernel_item stack_walk[] = {STACK_OF, K_TWO(LIST, Stack, 1, 0),
                                                   K(PTR, Stack)};
static const struct ew_kernel_item stack_key[] = {STACK_OF, K(PTR, StackKey)};
static const struct ew_kernel_item stack_frames[] = {
    K(PTR, StackKey), K_TWO(LIST, StackFrame, 1, 0), K(PTR, StackFrame)};

static const struct ew_kernel_event stack_events[] = {
    ROW(32, 0, "StackWalk/Stack", stack_walk),
    ROW(34, 0, "StackWalk/KeyCreate", stack_frames),
    ROW(35, 0, "StackWalk/KeyDelete", stack_frames),
    ROW(36, 0, "StackWalk/KeyRundown", stack_frames),
    ROW(37, 0, "StackWalk/StackKeyKernel", stack_key),
    ROW(38, 0, "StackWalk/StackKeyUser", stack_key),
};
const struct ew_kernel_class ew_kernel_stackwalk =
    EW_KERNEL_CLASS("StackWalk", "Windows Kernel", stack_events);

/* ----------------------------------------------------------------- PageFault */

static const struct ew_kernel_item memory_fault[] = {K(PTR, VirtualAddress),
                                                     K(PTR, ProgramCounter)};
static const struct ew_kernel_item memory_hard_fault[] = {
    K(U64, InitialTime), K(U64, ReadOffset), K(PTR, VirtualAddress),
    K(PTR, FileObject),  K(U32, TThreadId),  K(U32, ByteCount)};
static const struct ew_kernel_item memory_alloc[] = {K(PTR, BaseAddress), K(SIZE, RegionSize),
                                                     K(U32, ProcessId), K(X32, Flags)};
static const struct ew_kernel_item memory_alloc_rundown[] = {
    K(PTR, BaseAddress), K(SIZE, RegionSize), K(U32, ProcessId), K(X32, Flags),
    K(SIZE, CommitSizeInBytes)};
static const struct ew_kernel_item memory_range[] = {K(PTR, BaseAddress), K(SIZE, SizeInBytes),
                                                     K(X32, Flags)};
static const struct ew_kernel_item memory_heap_rundown[] = {
    K(PTR, HeapHandle),        K(X32, HRFlags),   K(U32, HRPid),  K_ARG(U32, HRRangeCount, 1),
    K_TWO(LIST, Ranges, 2, 1), K(PTR, HRAddress), K(SIZE, HRSize)};
static const struct ew_kernel_item memory_heap_rundown_3[] = {
    K(PTR, HeapHandle), K(X32, HRFlags),           K(U32, HRPid),     K_ARG(U32, HRRangeCount, 1),
    K(U32, Reserved),   K_TWO(LIST, Ranges, 2, 1), K(PTR, HRAddress), K(SIZE, HRSize)};
static const struct ew_kernel_item memory_heap_create[] = {
    K(PTR, HeapHandle), K(SIZE, FirstRangeSize), K(X32, HRCreateFlags)};
static const struct ew_kernel_item memory_heap_range[] = {K(PTR, HeapHandle), K(PTR, HRAddress),
                                                          K(SIZE, HRSize)};
static const struct ew_kernel_item memory_heap_destroy[] = {K(PTR, HeapHandle)};
static const struct ew_kernel_item memory_image_backed[] = {K(PTR, FileObject), K(X32, DeviceChar),
                                                            K(X16, FileChar), K(X16, LoadFlags)};
#define WORKING_SET                                                            \
    K(U32, ProcessId), K(SIZE, WorkingSetPageCount), K(SIZE, CommitPageCount), \
        K(SIZE, VirtualSizeInPages), K(SIZE, PrivateWorkingSetPageCount)
static const struct ew_kernel_item memory_working_sets[] = {
    K_ARG(U32, Count, 1), K_TWO(LIST, WSCommitInfo, 5, 1), WORKING_SET};
static const struct ew_kernel_item memory_working_sets_2[] = {
    K_ARG(U32, Count, 1),        K_TWO(LIST, WSCommitInfo, 9, 1), WORKING_SET,
    K(SIZE, StoreSizePageCount), K(SIZE, StoredPageCount),        K(SIZE, CommitDebtInPages),
    K(SIZE, SharedCommitInPages)};

static const struct ew_kernel_event memory_events[] = {
    ROW(10, 0, "Memory/TransitionFault", memory_fault),
    ROW(11, 0, "Memory/DemandZeroFault", memory_fault),
    ROW(12, 0, "Memory/CopyOnWrite", memory_fault),
    ROW(13, 0, "Memory/GuardMemory", memory_fault),
    ROW(14, 0, "Memory/HardMemory", memory_fault),
    ROW(15, 0, "Memory/AccessViolation", memory_fault),
    ROW(32, 0, "Memory/HardFault", memory_hard_fault),
    ROW_NAME(35, "Memory/InMemory"),
    ROW_NAME(73, "Memory/PFMappedSectionCreate"),
    ROW_NAME(76, "Memory/SessionDCStop"),
    ROW_NAME(79, "Memory/PFMappedSectionDelete"),
    ROW(98, 0, "VirtualMem/Alloc", memory_alloc),
    ROW(99, 0, "VirtualMem/Free", memory_alloc),
    ROW(100, 0, "Memory/HeapRangeRundown", memory_heap_rundown),
    ROW(100, 3, "Memory/HeapRangeRundown", memory_heap_rundown_3),
    ROW(101, 0, "Memory/HeapRangeCreate", memory_heap_create),
    ROW(102, 0, "Memory/HeapRangeReserve", memory_heap_range),
    ROW(103, 0, "Memory/HeapRangeRelease", memory_heap_range),
    ROW(104, 0, "Memory/HeapRangeDestroy", memory_heap_destroy),
    ROW(105, 0, "Memory/ImageLoadBacked", memory_image_backed),
    ROW_NAME(112, "Memory/SystemMemInfo"),
    ROW_NAME(115, "Memory/InMemoryStoreFault"),
    ROW_NAME(117, "Memory/InMemoryActive"),
    ROW_NAME(118, "Memory/PageAccess"),
    ROW_NAME(119, "Memory/PageRelease"),
    ROW_NAME(120, "Memory/RangeAccess"),
    ROW_NAME(121, "Memory/RangeRelease"),
    ROW_NAME(122, "Memory/Combine"),
    ROW_NAME(123, "Memory/KernelMemUsage"),
    ROW_NAME(124, "Memory/MMStats"),
    ROW(125, 0, "Memory/ProcessMemInfo", memory_working_sets),
    ROW(125, 2, "Memory/ProcessMemInfo", memory_working_sets_2),
    ROW_NAME(126, "Memory/MemInfoSessionWS"),
    ROW(127, 0, "Memory/VirtualRotate", memory_range),
    ROW(128, 0, "Memory/VirtualAllocDCStart", memory_alloc_rundown),
    ROW(129, 0, "Memory/VirtualAllocDCStop", memory_alloc_rundown),
    ROW_NAME(130, "Memory/PageAccessEx"),
    ROW_NAME(131, "Memory/RemoveFromWS"),
    ROW_NAME(132, "Memory/WSSharableRundown"),
    ROW_NAME(133, "Memory/InMemoryActiveRundown"),
    ROW(134, 0, "Memory/MemResetInfo", memory_range),
};
const struct ew_kernel_class ew_kernel_memory =
    EW_KERNEL_CLASS("Memory", "Windows Kernel", memory_events);
