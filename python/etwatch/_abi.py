# SPDX-License-Identifier: MIT
"""The C interface as ctypes declarations. Written by scripts/python_abi.py: do not change by hand."""
import ctypes
from ctypes import (
    POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint16, c_uint32, c_uint64, c_uint8,
    c_void_p,
)
from typing import Any, Dict, List, Tuple

VERSION = "0.1.0"

ETWATCH_METRIC_SET_WORDS = 4
ETWATCH_ALERTS_MAX = 16
ETWATCH_READ_COPY_MIN = 16384
ARROW_FLAG_DICTIONARY_ORDERED = 1
ARROW_FLAG_NULLABLE = 2
ARROW_FLAG_MAP_KEYS_SORTED = 4
ETWATCH_SPAN_CAUSES = 6
ETWATCH_EINVAL = -1
ETWATCH_ENOMEM = -2
ETWATCH_EPERM = -3
ETWATCH_ENOTSUP = -4
ETWATCH_ENOENT = -5
ETWATCH_ESTATE = -6
ETWATCH_ELIMIT = -7
ETWATCH_EOS = -8
ETWATCH_EFORMAT = -9
ETWATCH_ETRUNC = -10
ETWATCH_SOURCE_AUTO = 0
ETWATCH_SOURCE_ETW = 1
ETWATCH_SOURCE_ETL = 2
ETWATCH_SOURCE_EBPF = 3
ETWATCH_SOURCE_POLL = 4
ETWATCH_TYPE_START = 1
ETWATCH_TYPE_EXIT = 2
ETWATCH_TYPE_SAMPLE = 3
ETWATCH_TYPE_THREAD = 4
ETWATCH_METRIC_COUNT = 53
ETWATCH_METRIC_DEFAULT = 255
ETWATCH_SAMPLE_COMPLETE = 1
ETWATCH_SAMPLE_PREEXISTING = 2
ETWATCH_SAMPLE_HAS_PPID = 4
ETWATCH_SAMPLE_HAS_SESSION = 8
ETWATCH_SAMPLE_OTHER = 16
ETWATCH_EVENT_SWITCH = 1
ETWATCH_EVENT_WAKEUP = 2
ETWATCH_EVENT_FORK = 3
ETWATCH_EVENT_EXEC = 4
ETWATCH_EVENT_EXIT = 5
ETWATCH_EVENT_FAULTS = 6
ETWATCH_EVENT_UNTHROTTLE = 7
ETWATCH_LOSS_KERNEL_LOG = 1
ETWATCH_LOSS_LIFECYCLE = 2
ETWATCH_LOSS_STREAM = 3
ETWATCH_LOSS_TABLE = 4
ETWATCH_LOSS_QUEUE = 5
ETWATCH_LOSS_BUFFERS = 6
ETWATCH_ALERT_COMPLETE = 1
ETWATCH_ALERT_ENDED = 2
ETWATCH_ALERT_EXACT = 4
ETWATCH_CONFIG_ALL = 1
ETWATCH_CONFIG_THREADS = 2
ETWATCH_CONFIG_DENSE = 4
ETWATCH_CONFIG_EVENTS = 8
ETWATCH_CONFIG_CMDLINE = 16
ETWATCH_CONFIG_NO_FALLBACK = 32
ETWATCH_CONFIG_NO_BUDGET = 64
ETWATCH_CONFIG_KERNEL_THREADS = 128
ETWATCH_CONFIG_AGGREGATE = 256
ETWATCH_CONFIG_QUEUE = 512
ETWATCH_CONFIG_NO_SYSTEM = 1024
ETWATCH_CONFIG_EVENTS_ALL = 1048576
ETWATCH_CONFIG_EVENTS_CAUSES = 2097152
ETWATCH_CHECK_OK = 0
ETWATCH_CHECK_WARN = 1
ETWATCH_CHECK_FAIL = 2
ETWATCH_TRACE_ETL = 1
ETWATCH_TRACE_PERFETTO = 2
ETWATCH_FIELD_U64 = 1
ETWATCH_FIELD_I64 = 2
ETWATCH_FIELD_HEX = 3
ETWATCH_FIELD_BOOL = 4
ETWATCH_FIELD_DOUBLE = 5
ETWATCH_FIELD_TEXT = 6
ETWATCH_FIELD_BINARY = 7
ETWATCH_FIELD_NULL = 8
ETWATCH_FIELD_ARRAY = 9
ETWATCH_FIELD_STRUCT = 10
ETWATCH_FIELD_CLOSE = 11
ETWATCH_FIELD_FLOAT = 12
ETWATCH_TRACE_HAS_PID = 1
ETWATCH_TRACE_HAS_TID = 2
ETWATCH_TRACE_DECODED = 4
ETWATCH_TRACE_HAS_HEADER_IDS = 8
ETWATCH_TRACE_NAMED = 16
ETWATCH_TRACE_FIRST_THREAD = 32
ETWATCH_CLASS_RAW = 0
ETWATCH_CLASS_PARTLY = 1
ETWATCH_CLASS_DECODED = 2
ETWATCH_REPORT_THREADS = 1
ETWATCH_REPORT_IMAGES = 2
ETWATCH_REPORT_CMDLINE = 4
ETWATCH_TABLE_PROCESSES = 1
ETWATCH_TABLE_THREADS = 2
ETWATCH_TABLE_CLASSES = 3
ETWATCH_TABLE_IMAGES = 4
ETWATCH_TABLE_EVENTS = 5
ETWATCH_TABLE_SAMPLES = 6
ETWATCH_TABLE_THREAD_SAMPLES = 7
ETWATCH_TABLE_SPANS = 8
ETWATCH_TABLE_INFERENCES = 9
ETWATCH_TABLE_OPERATORS = 10
ETWATCH_TABLE_DEVICES = 11
ETWATCH_TABLE_FIELDS = 1
ETWATCH_TABLE_TYPED = 2
ETWATCH_TABLE_PAYLOAD = 4
ETWATCH_TABLE_CMDLINE = 8
ETWATCH_TABLE_TIMESTAMPS = 16
ETWATCH_TABLE_DENSE = 32
ETWATCH_TABLE_TAKE = 64
ETWATCH_TABLE_CSV_RAW = 128
ETWATCH_FILTER_EXCLUDE = 1
ETWATCH_FILTER_FIRST_THREADS = 2
ETWATCH_FILTER_OTHER_THREADS = 4
ETWATCH_CONSUMER_NO_FIELDS = 1
ETWATCH_CONSUMER_CMDLINE = 2
ETWATCH_DEVICE_GPU = 1
ETWATCH_DEVICE_NPU = 2
ETWATCH_DEVICE_ENERGY = 3
ETWATCH_D_util_percent = 0
ETWATCH_D_memory_util_percent = 1
ETWATCH_D_encoder_percent = 2
ETWATCH_D_decoder_percent = 3
ETWATCH_D_memory_used_bytes = 4
ETWATCH_D_memory_total_bytes = 5
ETWATCH_D_temperature_celsius = 6
ETWATCH_D_clock_mhz = 7
ETWATCH_D_memory_clock_mhz = 8
ETWATCH_D_power_watts = 9
ETWATCH_D_busy_ns = 10
ETWATCH_D_energy_uj = 11
ETWATCH_D_idle_energy_uj = 12
ETWATCH_D_watched_energy_uj = 13
ETWATCH_D_other_energy_uj = 14
ETWATCH_D_throttle_reasons = 15
ETWATCH_D_pcie_received_bytes_per_second = 16
ETWATCH_D_pcie_sent_bytes_per_second = 17
ETWATCH_D_processes = 18
ETWATCH_D_nvlink_received_bytes = 19
ETWATCH_D_nvlink_sent_bytes = 20
ETWATCH_DEVICE_METRIC_COUNT = 21
ETWATCH_THROTTLE_IDLE = 1
ETWATCH_THROTTLE_APPLICATION_CLOCKS = 2
ETWATCH_THROTTLE_POWER_CAP = 4
ETWATCH_THROTTLE_HARDWARE = 8
ETWATCH_THROTTLE_SYNC_BOOST = 16
ETWATCH_THROTTLE_THERMAL = 32
ETWATCH_THROTTLE_HARDWARE_THERMAL = 64
ETWATCH_THROTTLE_POWER_BRAKE = 128
ETWATCH_THROTTLE_DISPLAY_CLOCKS = 256
ETWATCH_DEVICE_PROBLEM = 1
ETWATCH_DEVICE_RECOVERED = 2
ETWATCH_DEVICE_ABSENT = 4
ETWATCH_DEVICE_PROCESS_GPU_TIME = 1
ETWATCH_DEVICE_PROCESS_NPU_TIME = 2
ETWATCH_DEVICE_PROCESS_MEMORY = 4
ETWATCH_DEVICE_PROCESS_ENERGY = 8
ETWATCH_DEVICE_PROCESS_CODEC_TIME = 16
ETWATCH_EXPORT_PERFETTO = 1
ETWATCH_EXPORT_ARROW = 2
ETWATCH_EXPORT_CSV = 3
ETWATCH_EXPORT_JSONL = 4
ETWATCH_EXPORT_FOLDED = 5
ETWATCH_EXPORT_SPEEDSCOPE = 6
ETWATCH_EXPORT_CHROME = 7
ETWATCH_GPU_KERNEL = 1
ETWATCH_GPU_COPY = 2
ETWATCH_GPU_SET = 3
ETWATCH_GPU_WAIT = 4
ETWATCH_GPU_RANGE = 5
ETWATCH_GPU_HOST_TO_DEVICE = 1
ETWATCH_GPU_DEVICE_TO_HOST = 2
ETWATCH_GPU_DEVICE_TO_DEVICE = 8
ETWATCH_GPU_HOST_TO_HOST = 9
ETWATCH_GPU_PEER_TO_PEER = 10
ETWATCH_GPU_OP_HAS_CALL = 1
ETWATCH_GPU_OP_ASYNC = 2
ETWATCH_GPU_STARTING = 0
ETWATCH_GPU_ACTIVE = 1
ETWATCH_GPU_FAILED = 2
ETWATCH_GPU_TAKEN = 3
ETWATCH_GPU_CLOSED = 4
ETWATCH_GPU_CUT = 5
ETWATCH_BACKEND_ETW = 0
ETWATCH_BACKEND_ETL = 1
ETWATCH_BACKEND_EBPF = 2
ETWATCH_BACKEND_POLL_LINUX = 3
ETWATCH_BACKEND_POLL_WINDOWS = 4
ETWATCH_BACKEND_COUNT = 5
ETWATCH_EXACTNESS_UNAVAILABLE = 0
ETWATCH_EXACTNESS_ESTIMATED = 1
ETWATCH_EXACTNESS_POLLED = 2
ETWATCH_EXACTNESS_EXACT = 3
ETWATCH_PROCESS_THREAD_SUMS = 1
ETWATCH_ROLLUP_TOTALS = 1
ETWATCH_ROLLUP_ACTIVE = 1
ETWATCH_ROLLUP_PREEXISTING = 2
ETWATCH_ROLLUP_EXITED = 4
ETWATCH_ROLLUP_THREADS_UNLISTED = 1
ETWATCH_ROLLUP_INCOMPLETE = 2
ETWATCH_SESSION_BY_FLAGS = 1
ETWATCH_SESSION_BY_PROVIDERS = 2
ETWATCH_SESSION_BY_EVENTS = 4
ETWATCH_SESSION_BY_BUFFERS = 8
ETWATCH_SESSION_OURS = 1
ETWATCH_SESSION_SYSTEM = 2
ETWATCH_SESSION_REAL_TIME = 4
ETWATCH_SESSION_ORPHAN = 8
ETWATCH_FORMAT_TABLE = 1
ETWATCH_FORMAT_JSONL = 2
ETWATCH_FORMAT_CSV = 3
ETWATCH_FORMAT_PERFETTO = 4
ETWATCH_FORMAT_CSV_RAW = 5
ETWATCH_SINK_CMDLINE = 1
ETWATCH_SINK_COLOR = 2
ETWATCH_SINK_PAYLOAD = 4
ETWATCH_SINK_CLASSES = 8
ETWATCH_SINK_OVERVIEW = 16
ETWATCH_SPAN_WORK = 1
ETWATCH_SPAN_INFERENCE = 2
ETWATCH_SPAN_LOAD = 3
ETWATCH_SPAN_OPERATOR = 4
ETWATCH_SPAN_COMPLETE = 1
ETWATCH_SPAN_FAILED = 2
ETWATCH_SPAN_ASYNC = 4
ETWATCH_SPAN_HAS_FAULTS = 8
ETWATCH_SPAN_PROBED = 16
ETWATCH_SPAN_HAS_GPU = 32
ETWATCH_CAUSE_WORK = 0
ETWATCH_CAUSE_CPU = 1
ETWATCH_CAUSE_THROTTLED = 2
ETWATCH_CAUSE_FAULT = 3
ETWATCH_CAUSE_DISK = 4
ETWATCH_CAUSE_LOCK = 5
ETWATCH_CAUSE_PROCESS = 6
ETWATCH_CAUSE_SLEEP = 7
ETWATCH_CAUSE_UNKNOWN = 8
ETWATCH_CAUSE_COUNT = 9
ETWATCH_PROBES_NO_PYTHON = 1
ETWATCH_PROBES_ONLY_PYTHON = 2
ETWATCH_STRIP_RUN = 1
ETWATCH_STRIP_READY = 2
ETWATCH_STRIP_SLEEP = 3
ETWATCH_STRIP_DISK = 4
ETWATCH_STRIP_FAULT = 5
ETWATCH_SUMMARY_ENDED = 1
ETWATCH_SUM_SWITCHES = 0
ETWATCH_SUM_FAULTS = 1
ETWATCH_SUM_COUNT = 2
ETWATCH_S_cpu_percent = 0
ETWATCH_S_load_1 = 1
ETWATCH_S_load_5 = 2
ETWATCH_S_load_15 = 3
ETWATCH_S_memory_total_bytes = 4
ETWATCH_S_memory_available_bytes = 5
ETWATCH_S_swap_total_bytes = 6
ETWATCH_S_swap_used_bytes = 7
ETWATCH_S_paged_in_bytes = 8
ETWATCH_S_paged_out_bytes = 9
ETWATCH_S_disk_read_bytes = 10
ETWATCH_S_disk_write_bytes = 11
ETWATCH_S_net_received_bytes = 12
ETWATCH_S_net_sent_bytes = 13
ETWATCH_S_processes = 14
ETWATCH_S_threads = 15
ETWATCH_S_threads_running = 16
ETWATCH_S_threads_started = 17
ETWATCH_S_threads_ended = 18
ETWATCH_S_switches = 19
ETWATCH_S_processes_started = 20
ETWATCH_S_processes_ended = 21
ETWATCH_SYSTEM_METRIC_COUNT = 22
ETWATCH_SYSTEM_LINUX = 0
ETWATCH_SYSTEM_WINDOWS = 1
ETWATCH_SYSTEM_OS_COUNT = 2
ETWATCH_WINDOW_AVG = 1
ETWATCH_WINDOW_MAX = 2
ETWATCH_WINDOW_P95 = 4
ETWATCH_WINDOW_P99 = 8

# The metrics in the order of their indexes: name, C type, kind.
METRICS: Tuple[Tuple[str, str, str], ...] = (
    ("cpu_percent", "double", "gauge"), ("cpu_ns", "uint64_t", "counter"), ("cpu_user_ns", "uint64_t", "counter"),
    ("cpu_kernel_ns", "uint64_t", "counter"), ("cycles", "uint64_t", "counter"),
    ("instructions", "uint64_t", "counter"), ("cache_misses", "uint64_t", "counter"),
    ("switches_voluntary", "uint64_t", "counter"), ("switches_involuntary", "uint64_t", "counter"),
    ("runq_wait_ns", "uint64_t", "counter"), ("priority", "int64_t", "gauge"), ("affinity", "uint64_t", "gauge"),
    ("rss_bytes", "uint64_t", "gauge"), ("rss_peak_bytes", "uint64_t", "gauge"),
    ("private_bytes", "uint64_t", "gauge"), ("virtual_bytes", "uint64_t", "gauge"),
    ("faults_minor", "uint64_t", "counter"), ("faults_major", "uint64_t", "counter"),
    ("pool_paged_bytes", "uint64_t", "gauge"), ("pool_nonpaged_bytes", "uint64_t", "gauge"),
    ("threads", "uint64_t", "gauge"), ("threads_running", "uint64_t", "gauge"),
    ("threads_ready", "uint64_t", "gauge"), ("threads_waiting", "uint64_t", "gauge"),
    ("threads_suspended", "uint64_t", "gauge"), ("io_read_bytes", "uint64_t", "counter"),
    ("io_write_bytes", "uint64_t", "counter"), ("io_other_bytes", "uint64_t", "counter"),
    ("io_read_ops", "uint64_t", "counter"), ("io_write_ops", "uint64_t", "counter"),
    ("io_other_ops", "uint64_t", "counter"), ("io_priority", "int64_t", "gauge"),
    ("disk_read_bytes", "uint64_t", "counter"), ("disk_write_bytes", "uint64_t", "counter"),
    ("net_received_bytes", "uint64_t", "counter"), ("net_sent_bytes", "uint64_t", "counter"),
    ("handles", "uint64_t", "gauge"), ("handles_peak", "uint64_t", "gauge"), ("gdi_objects", "uint64_t", "gauge"),
    ("user_objects", "uint64_t", "gauge"), ("gpu_ns", "uint64_t", "counter"), ("gpu_percent", "double", "gauge"),
    ("gpu_memory_bytes", "uint64_t", "gauge"), ("npu_ns", "uint64_t", "counter"), ("npu_percent", "double", "gauge"),
    ("energy_uj", "uint64_t", "counter"), ("exit_ns", "uint64_t", "gauge"), ("exit_code", "int64_t", "gauge"),
    ("exit_signal", "int64_t", "gauge"), ("presents", "uint64_t", "counter"),
    ("gpu_encoder_ns", "uint64_t", "counter"), ("gpu_decoder_ns", "uint64_t", "counter"),
    ("rss_private_bytes", "uint64_t", "gauge"),
)
ERRORS: Tuple[Tuple[str, int], ...] = (
    ("EINVAL", -1),
    ("ENOMEM", -2),
    ("EPERM", -3),
    ("ENOTSUP", -4),
    ("ENOENT", -5),
    ("ESTATE", -6),
    ("ELIMIT", -7),
    ("EOS", -8),
    ("EFORMAT", -9),
    ("ETRUNC", -10),
)


class ErrorInfo(ctypes.Structure):
    pass


class MetricSet(ctypes.Structure):
    pass


class Sample(ctypes.Structure):
    pass


class Samples(ctypes.Structure):
    pass


class Event(ctypes.Structure):
    pass


class Events(ctypes.Structure):
    pass


class Loss(ctypes.Structure):
    pass


class AlertThread(ctypes.Structure):
    pass


class Alert(ctypes.Structure):
    pass


class Devices(ctypes.Structure):
    pass


class Callbacks(ctypes.Structure):
    pass


class SessionOptions(ctypes.Structure):
    pass


class Rate(ctypes.Structure):
    pass


class Config(ctypes.Structure):
    pass


class Stats(ctypes.Structure):
    pass


class Meta(ctypes.Structure):
    pass


class Aggregate(ctypes.Structure):
    pass


class Check(ctypes.Structure):
    pass


class TraceOptions(ctypes.Structure):
    pass


class TraceFile(ctypes.Structure):
    pass


class TraceStats(ctypes.Structure):
    pass


class FieldV(ctypes.Union):
    pass


class Field(ctypes.Structure):
    pass


class TraceEvent(ctypes.Structure):
    pass


class TraceClass(ctypes.Structure):
    pass


class TraceImage(ctypes.Structure):
    pass


class TraceSystem(ctypes.Structure):
    pass


class ReportCallbacks(ctypes.Structure):
    pass


class Span(ctypes.Structure):
    pass


class AccountOptions(ctypes.Structure):
    pass


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowArrayStream(ctypes.Structure):
    pass


class EventFilter(ctypes.Structure):
    pass


class TableOptions(ctypes.Structure):
    pass


class CollectorStats(ctypes.Structure):
    pass


class ConsumerOptions(ctypes.Structure):
    pass


class ConsumerStats(ctypes.Structure):
    pass


class DeviceProcess(ctypes.Structure):
    pass


class Device(ctypes.Structure):
    pass


class DeviceOptions(ctypes.Structure):
    pass


class ExportCounts(ctypes.Structure):
    pass


class GpuOp(ctypes.Structure):
    pass


class GpuProcess(ctypes.Structure):
    pass


class GpuSum(ctypes.Structure):
    pass


class GpuTraceOptions(ctypes.Structure):
    pass


class MetricInfo(ctypes.Structure):
    pass


class MetricBackend(ctypes.Structure):
    pass


class ProcessId(ctypes.Structure):
    pass


class ProcessThread(ctypes.Structure):
    pass


class RollupOptions(ctypes.Structure):
    pass


class RollupRow(ctypes.Structure):
    pass


class RollupInfo(ctypes.Structure):
    pass


class Provider(ctypes.Structure):
    pass


class RecorderStats(ctypes.Structure):
    pass


class SessionInfo(ctypes.Structure):
    pass


class SinkOptions(ctypes.Structure):
    pass


class Window(ctypes.Structure):
    pass


class Windows(ctypes.Structure):
    pass


class TraceSummary(ctypes.Structure):
    pass


class Cause(ctypes.Structure):
    pass


class Operator(ctypes.Structure):
    pass


class ProbesOptions(ctypes.Structure):
    pass


class ProbesStats(ctypes.Structure):
    pass


class SpansOptions(ctypes.Structure):
    pass


class Strip(ctypes.Structure):
    pass


class SpanGroup(ctypes.Structure):
    pass


class SummaryOptions(ctypes.Structure):
    pass


class SummaryThread(ctypes.Structure):
    pass


class SummaryProcess(ctypes.Structure):
    pass


class System(ctypes.Structure):
    pass


class WaitsThread(ctypes.Structure):
    pass


class WaitsEdge(ctypes.Structure):
    pass


class WaitsInfo(ctypes.Structure):
    pass


class WindowMetric(ctypes.Structure):
    pass


class AggregatorOptions(ctypes.Structure):
    pass


etwatch_event_fn = ctypes.CFUNCTYPE(None, c_void_p, POINTER(TraceEvent))
etwatch_write_fn = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
ErrorInfo._fields_ = [
    ("size", c_uint32), ("code", c_int32), ("os_code", c_int64), ("offset", c_uint64), ("message", c_char * 256),
    ("fix", c_char * 256),
]
MetricSet._fields_ = [
    ("words", c_uint64 * 4),
]
Sample._fields_ = [
    ("size", c_uint32), ("type", c_uint32), ("source", c_uint32), ("flags", c_uint32), ("pid", c_uint32),
    ("tid", c_uint32), ("ppid", c_uint32), ("session_id", c_uint32), ("start_ns", c_uint64), ("t_ns", c_uint64),
    ("dt_ns", c_uint64), ("name", c_char_p), ("thread_name", c_char_p), ("user", c_char_p), ("cgroup", c_char_p),
    ("cmdline", c_char_p), ("has", MetricSet), ("cpu_percent", c_double), ("cpu_ns", c_uint64),
    ("cpu_user_ns", c_uint64), ("cpu_kernel_ns", c_uint64), ("cycles", c_uint64), ("instructions", c_uint64),
    ("cache_misses", c_uint64), ("switches_voluntary", c_uint64), ("switches_involuntary", c_uint64),
    ("runq_wait_ns", c_uint64), ("priority", c_int64), ("affinity", c_uint64), ("rss_bytes", c_uint64),
    ("rss_peak_bytes", c_uint64), ("private_bytes", c_uint64), ("virtual_bytes", c_uint64),
    ("faults_minor", c_uint64), ("faults_major", c_uint64), ("pool_paged_bytes", c_uint64),
    ("pool_nonpaged_bytes", c_uint64), ("threads", c_uint64), ("threads_running", c_uint64),
    ("threads_ready", c_uint64), ("threads_waiting", c_uint64), ("threads_suspended", c_uint64),
    ("io_read_bytes", c_uint64), ("io_write_bytes", c_uint64), ("io_other_bytes", c_uint64),
    ("io_read_ops", c_uint64), ("io_write_ops", c_uint64), ("io_other_ops", c_uint64), ("io_priority", c_int64),
    ("disk_read_bytes", c_uint64), ("disk_write_bytes", c_uint64), ("net_received_bytes", c_uint64),
    ("net_sent_bytes", c_uint64), ("handles", c_uint64), ("handles_peak", c_uint64), ("gdi_objects", c_uint64),
    ("user_objects", c_uint64), ("gpu_ns", c_uint64), ("gpu_percent", c_double), ("gpu_memory_bytes", c_uint64),
    ("npu_ns", c_uint64), ("npu_percent", c_double), ("energy_uj", c_uint64), ("exit_ns", c_uint64),
    ("exit_code", c_int64), ("exit_signal", c_int64), ("presents", c_uint64), ("gpu_encoder_ns", c_uint64),
    ("gpu_decoder_ns", c_uint64), ("rss_private_bytes", c_uint64),
]
Samples._fields_ = [
    ("size", c_uint32), ("stride", c_uint32), ("count", c_size_t), ("items", POINTER(Sample)),
]
Event._fields_ = [
    ("size", c_uint32), ("kind", c_uint32), ("t_ns", c_uint64), ("cpu", c_uint32), ("pid", c_uint32),
    ("tid", c_uint32), ("next_pid", c_uint32), ("next_tid", c_uint32), ("state", c_uint32), ("priority", c_int32),
    ("exit_code", c_int32), ("name", c_char_p), ("next_name", c_char_p), ("next_priority", c_int32),
    ("target_cpu", c_uint32), ("wait_ns", c_uint64), ("ready_ns", c_uint64), ("waker_pid", c_uint32),
    ("waker_tid", c_uint32), ("wait_reason", c_char_p), ("io_wait", c_uint32), ("hard_faults", c_uint32),
    ("from_ns", c_uint64), ("fault_ns", c_uint64), ("fault_count", c_uint32), ("in_fault", c_uint32),
    ("throttled", c_uint32), ("reserved", c_uint32),
]
Events._fields_ = [
    ("size", c_uint32), ("stride", c_uint32), ("count", c_size_t), ("items", POINTER(Event)),
]
Loss._fields_ = [
    ("size", c_uint32), ("stage", c_uint32), ("count", c_uint64), ("from_ns", c_uint64), ("to_ns", c_uint64),
]
AlertThread._fields_ = [
    ("tid", c_uint32), ("reserved", c_uint32), ("cpu_ns", c_uint64), ("name", c_char_p),
]
Alert._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("rule", c_uint32), ("metric", c_uint32), ("condition", c_char_p),
    ("source", c_uint32), ("pid", c_uint32), ("start_ns", c_uint64), ("name", c_char_p), ("from_ns", c_uint64),
    ("to_ns", c_uint64), ("window_ns", c_uint64), ("threshold", c_double), ("value", c_double), ("peak", c_double),
    ("thread_count", c_uint32), ("thread_entries", c_uint32), ("threads", POINTER(AlertThread)),
]
Devices._fields_ = [
    ("size", c_uint32), ("stride", c_uint32), ("count", c_size_t), ("items", POINTER(Device)),
]
Callbacks._fields_ = [
    ("size", c_uint32), ("reserved", c_uint32), ("ctx", c_void_p),
    ("on_samples", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Samples))),
    ("on_events", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Events))),
    ("on_loss", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Loss))),
    ("on_alert", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Alert))),
    ("on_end", ctypes.CFUNCTYPE(None, c_void_p, POINTER(ErrorInfo))),
    ("on_devices", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Devices))),
]
SessionOptions._fields_ = [
    ("size", c_uint32), ("buffer_kb", c_uint32), ("min_buffers", c_uint32), ("max_buffers", c_uint32),
    ("flush_ms", c_uint32), ("profile_hz", c_uint32), ("memory_bytes", c_uint64), ("name", c_char_p),
    ("kernel", c_char_p), ("stacks", c_char_p), ("providers", POINTER(Provider)), ("provider_count", c_uint32),
    ("ways", c_uint32), ("counters", MetricSet),
]
Rate._fields_ = [
    ("metrics", MetricSet), ("hz", c_double),
]
Config._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("source", c_uint32), ("trace_count", c_uint32),
    ("traces", POINTER(c_char_p)), ("proc_root", c_char_p), ("session", c_char_p),
    ("session_options", POINTER(SessionOptions)), ("hz", c_double), ("budget_percent", c_double),
    ("latency_ms", c_uint32), ("queue_samples", c_uint32), ("max_processes", c_uint32), ("max_threads", c_uint32),
    ("pids", POINTER(c_uint32)), ("names", POINTER(c_char_p)), ("uids", POINTER(c_uint32)),
    ("cgroups", POINTER(c_char_p)), ("pid_count", c_uint32), ("name_count", c_uint32), ("uid_count", c_uint32),
    ("cgroup_count", c_uint32), ("exclude_pids", POINTER(c_uint32)), ("exclude_names", POINTER(c_char_p)),
    ("exclude_uids", POINTER(c_uint32)), ("exclude_cgroups", POINTER(c_char_p)), ("exclude_pid_count", c_uint32),
    ("exclude_name_count", c_uint32), ("exclude_uid_count", c_uint32), ("exclude_cgroup_count", c_uint32),
    ("metrics", MetricSet), ("polled_metrics", MetricSet), ("rates", POINTER(Rate)), ("alerts", POINTER(c_char_p)),
    ("rate_count", c_uint32), ("alert_count", c_uint32), ("top_n", c_uint32), ("top_n_metric", c_uint32),
    ("sys_root", c_char_p), ("nvml_library", c_char_p), ("max_memory_bytes", c_uint64), ("gpu_trace", c_void_p),
    ("amdsmi_library", c_char_p),
]
Stats._fields_ = [
    ("size", c_uint32), ("source", c_uint32), ("hz_requested", c_double), ("hz_reached", c_double),
    ("hz_effective", c_double), ("samples", c_uint64), ("events", c_uint64), ("lost", c_uint64),
    ("undecoded", c_uint64), ("late", c_uint64), ("wakeups", c_uint64), ("processes", c_uint64),
    ("threads", c_uint64), ("self_rss_bytes", c_uint64), ("self_rss_peak_bytes", c_uint64),
    ("self_cpu_percent", c_double), ("self_kernel_percent", c_double), ("duration_ns", c_uint64),
    ("queue_dropped", c_uint64), ("step_ns", c_uint64), ("step_max_ns", c_uint64), ("self_sensor_percent", c_double),
]
Meta._fields_ = [
    ("size", c_uint32), ("source", c_uint32), ("cpu_count", c_uint32), ("reserved", c_uint32),
    ("hz_requested", c_double), ("anchor_unix_ns", c_uint64), ("anchor_raw_ns", c_uint64), ("estimated", MetricSet),
    ("available", MetricSet), ("fallback", c_char * 512),
]
Aggregate._fields_ = [
    ("count", c_uint64), ("avg", c_double), ("max", c_double), ("p95", c_double), ("p99", c_double),
]
Check._fields_ = [
    ("size", c_uint32), ("state", c_uint32), ("id", c_char_p), ("what", c_char_p), ("found", c_char_p),
    ("cost", c_char_p), ("fix", c_char_p),
]
TraceOptions._fields_ = [
    ("size", c_uint32), ("workers", c_uint32), ("from_ns", c_uint64), ("until_ns", c_uint64),
    ("on_progress", ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)), ("ctx", c_void_p),
    ("pids", POINTER(c_uint32)), ("pid_count", c_uint32), ("name_count", c_uint32), ("names", POINTER(c_char_p)),
    ("exclude_pids", POINTER(c_uint32)), ("exclude_names", POINTER(c_char_p)), ("exclude_pid_count", c_uint32),
    ("exclude_name_count", c_uint32), ("flags", c_uint32), ("reserved", c_uint32), ("max_memory_bytes", c_uint64),
]
TraceFile._fields_ = [
    ("size", c_uint32), ("os_major", c_uint32), ("os_minor", c_uint32), ("os_build", c_uint32),
    ("cpu_count", c_uint32), ("pointer_size", c_uint32), ("clock", c_uint32), ("cpu_mhz", c_uint32),
    ("clock_frequency", c_uint64), ("log_file_mode", c_uint32), ("compressed", c_uint32), ("buffer_bytes", c_uint32),
    ("buffers_written", c_uint32), ("events_lost", c_uint64), ("buffers_lost", c_uint64), ("start_ns", c_uint64),
    ("end_ns", c_uint64), ("boot_ns", c_uint64), ("file_bytes", c_uint64), ("path", c_char_p),
    ("session_name", c_char_p), ("format", c_uint32), ("source", c_uint32), ("os", c_char_p), ("host", c_char_p),
]
TraceStats._fields_ = [
    ("size", c_uint32), ("reserved", c_uint32), ("events", c_uint64), ("undecoded", c_uint64), ("lost", c_uint64),
    ("lost_buffers", c_uint64), ("bad_buffers", c_uint64), ("bad_events", c_uint64), ("bad_bytes", c_uint64),
    ("late", c_uint64), ("first_ns", c_uint64), ("last_ns", c_uint64), ("bytes", c_uint64),
    ("first_bad_offset", c_uint64), ("first_bad_file", c_uint32), ("reserved2", c_uint32),
    ("first_bad", c_char * 128), ("clock_set_back_ns", c_uint64),
]
FieldV._fields_ = [
    ("u", c_uint64), ("i", c_int64), ("d", c_double), ("text", c_char_p), ("bytes", POINTER(c_uint8)),
]
Field._fields_ = [
    ("name", c_char_p), ("type", c_uint32), ("len", c_uint32), ("v", FieldV),
]
TraceEvent._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("t_ns", c_uint64), ("t_rel_ns", c_uint64), ("t_raw", c_uint64),
    ("cpu", c_uint32), ("pid", c_uint32), ("tid", c_uint32), ("id", c_uint32), ("opcode", c_uint32),
    ("version", c_uint32), ("level", c_uint32), ("keyword", c_uint64), ("provider_guid", c_uint8 * 16),
    ("process", c_char_p), ("provider", c_char_p), ("event", c_char_p), ("payload", POINTER(c_uint8)),
    ("payload_size", c_uint32), ("field_count", c_uint32), ("fields", POINTER(Field)), ("header_pid", c_uint32),
    ("header_tid", c_uint32),
]
TraceClass._fields_ = [
    ("size", c_uint32), ("id", c_uint32), ("opcode", c_uint32), ("version", c_uint32), ("decoded", c_uint32),
    ("state", c_uint32), ("count", c_uint64), ("provider", c_char_p), ("event", c_char_p),
]
TraceImage._fields_ = [
    ("size", c_uint32), ("pid", c_uint32), ("base", c_uint64), ("bytes", c_uint64), ("load_ns", c_uint64),
    ("unload_ns", c_uint64), ("path", c_char_p),
]
TraceSystem._fields_ = [
    ("size", c_uint32), ("cpu_from_switches", c_uint32), ("busy_ns", c_uint64), ("idle_ns", c_uint64),
    ("dpc_ns", c_uint64), ("isr_ns", c_uint64), ("unknown_ns", c_uint64), ("switches", c_uint64),
    ("samples", c_uint64),
]
ReportCallbacks._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("on_system", ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(TraceSystem))),
    ("on_class", ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(TraceClass))),
    ("on_process", ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Sample), POINTER(MetricSet))),
    ("on_image", ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(TraceImage))), ("ctx", c_void_p),
]
Cause._fields_ = [
    ("kind", c_uint32), ("pid", c_uint32), ("tid", c_uint32), ("reserved", c_uint32), ("ns", c_uint64),
    ("name", c_char * 16),
]
Span._fields_ = [
    ("size", c_uint32), ("kind", c_uint32), ("flags", c_uint32), ("pid", c_uint32), ("tid", c_uint32),
    ("end_tid", c_uint32), ("start_ns", c_uint64), ("end_ns", c_uint64), ("name", c_char_p), ("session", c_char_p),
    ("thread_name", c_char_p), ("ns", c_uint64 * 9), ("cpu_ns", c_uint64), ("helper_cpu_ns", c_uint64),
    ("helper_ready_ns", c_uint64), ("shared_cpu_ns", c_uint64), ("wait_cpu_ns", c_uint64), ("fault_count", c_uint64),
    ("preempted", c_uint32), ("helpers", c_uint32), ("cause_count", c_uint32), ("reserved", c_uint32),
    ("causes", Cause * 6), ("shape", c_char_p), ("gpu_ns", c_uint64), ("wait_gpu_ns", c_uint64),
    ("gpu_kernels", c_uint32), ("reserved2", c_uint32),
]
AccountOptions._fields_ = [
    ("size", c_uint32), ("flags", c_uint32),
]
ArrowSchema._fields_ = [
    ("format", c_char_p), ("name", c_char_p), ("metadata", c_char_p), ("flags", c_int64), ("n_children", c_int64),
    ("children", POINTER(POINTER(ArrowSchema))), ("dictionary", POINTER(ArrowSchema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowSchema))), ("private_data", c_void_p),
]
ArrowArray._fields_ = [
    ("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
    ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(ArrowArray))),
    ("dictionary", POINTER(ArrowArray)), ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowArray))),
    ("private_data", c_void_p),
]
ArrowArrayStream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowSchema))),
    ("get_next", ctypes.CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowArray))),
    ("get_last_error", ctypes.CFUNCTYPE(c_char_p, POINTER(ArrowArrayStream))),
    ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowArrayStream))), ("private_data", c_void_p),
]
EventFilter._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("provider", c_char_p), ("events", POINTER(c_char_p)),
    ("pids", POINTER(c_uint32)), ("ids", POINTER(c_uint16)), ("event_count", c_uint32), ("pid_count", c_uint32),
    ("id_count", c_uint32), ("reserved", c_uint32),
]
TableOptions._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("batch_rows", c_uint32), ("provider_count", c_uint32),
    ("providers", POINTER(c_char_p)), ("events", POINTER(c_char_p)), ("event_count", c_uint32),
    ("reserved", c_uint32), ("hz", c_double), ("max_rows", c_uint64),
    ("on_progress", ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)), ("ctx", c_void_p),
    ("filters", POINTER(EventFilter)), ("pids", POINTER(c_uint32)), ("names", POINTER(c_char_p)),
    ("filter_count", c_uint32), ("pid_count", c_uint32), ("name_count", c_uint32), ("reserved2", c_uint32),
]
CollectorStats._fields_ = [
    ("size", c_uint32), ("reserved", c_uint32), ("samples", c_uint64), ("thread_samples", c_uint64),
    ("processes", c_uint64), ("events", c_uint64), ("dropped", c_uint64), ("spans", c_uint64),
    ("inferences", c_uint64), ("operators", c_uint64), ("devices", c_uint64),
]
ConsumerOptions._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("session", c_char_p), ("session_options", POINTER(SessionOptions)),
    ("providers", POINTER(c_char_p)), ("events", POINTER(c_char_p)), ("provider_count", c_uint32),
    ("event_count", c_uint32), ("pids", POINTER(c_uint32)), ("names", POINTER(c_char_p)), ("pid_count", c_uint32),
    ("name_count", c_uint32), ("filters", POINTER(EventFilter)), ("filter_count", c_uint32), ("reserved", c_uint32),
]
ConsumerStats._fields_ = [
    ("size", c_uint32), ("source", c_uint32), ("events", c_uint64), ("delivered", c_uint64), ("undecoded", c_uint64),
    ("lost", c_uint64), ("sample_interval_ns", c_uint64),
]
DeviceProcess._fields_ = [
    ("pid", c_uint32), ("has", c_uint32), ("gpu_ns", c_uint64), ("npu_ns", c_uint64), ("energy_uj", c_uint64),
    ("memory_bytes", c_uint64), ("encoder_ns", c_uint64), ("decoder_ns", c_uint64),
]
Device._fields_ = [
    ("size", c_uint32), ("kind", c_uint32), ("flags", c_uint32), ("index", c_uint32), ("t_ns", c_uint64),
    ("dt_ns", c_uint64), ("driver", c_char_p), ("id", c_char_p), ("name", c_char_p), ("problem", c_char_p),
    ("process_count", c_uint32), ("reserved", c_uint32), ("process_list", POINTER(DeviceProcess)), ("has", MetricSet),
    ("estimated", MetricSet), ("util_percent", c_double), ("memory_util_percent", c_double),
    ("encoder_percent", c_double), ("decoder_percent", c_double), ("memory_used_bytes", c_uint64),
    ("memory_total_bytes", c_uint64), ("temperature_celsius", c_double), ("clock_mhz", c_double),
    ("memory_clock_mhz", c_double), ("power_watts", c_double), ("busy_ns", c_uint64), ("energy_uj", c_uint64),
    ("idle_energy_uj", c_uint64), ("watched_energy_uj", c_uint64), ("other_energy_uj", c_uint64),
    ("throttle_reasons", c_uint64), ("pcie_received_bytes_per_second", c_double),
    ("pcie_sent_bytes_per_second", c_double), ("processes", c_uint64), ("nvlink_received_bytes", c_uint64),
    ("nvlink_sent_bytes", c_uint64),
]
DeviceOptions._fields_ = [
    ("size", c_uint32), ("kinds", c_uint32), ("hz", c_double), ("proc_root", c_char_p), ("sys_root", c_char_p),
    ("nvml_library", c_char_p), ("amdsmi_library", c_char_p),
]
ExportCounts._fields_ = [
    ("size", c_uint32), ("reserved", c_uint32), ("rows", c_uint64), ("without_stack", c_uint64), ("frames", c_uint64),
    ("frames_unnamed", c_uint64), ("refused", c_uint64),
]
GpuOp._fields_ = [
    ("size", c_uint32), ("kind", c_uint32), ("flags", c_uint32), ("pid", c_uint32), ("tid", c_uint32),
    ("device", c_uint32), ("context", c_uint32), ("stream", c_uint32), ("copy", c_uint32), ("correlation", c_uint32),
    ("start_ns", c_uint64), ("end_ns", c_uint64), ("call_start_ns", c_uint64), ("call_end_ns", c_uint64),
    ("bytes", c_uint64), ("name", c_char_p), ("call", c_char_p),
]
GpuProcess._fields_ = [
    ("size", c_uint32), ("pid", c_uint32), ("state", c_uint32), ("cupti_version", c_uint32), ("problem", c_char_p),
    ("kernels", c_uint64), ("copies", c_uint64), ("sets", c_uint64), ("waits", c_uint64), ("ranges", c_uint64),
    ("gpu_ns", c_uint64), ("kernel_ns", c_uint64), ("copy_ns", c_uint64), ("set_ns", c_uint64),
    ("bytes_to_device", c_uint64), ("bytes_to_host", c_uint64), ("bytes_on_device", c_uint64),
    ("bytes_other", c_uint64), ("set_bytes", c_uint64), ("launches", c_uint64), ("launch_ns", c_uint64),
    ("cpu_wait_ns", c_uint64), ("gpu_wait_ns", c_uint64), ("first_ns", c_uint64), ("last_ns", c_uint64),
    ("lost", c_uint64), ("late_ns", c_uint64),
]
GpuSum._fields_ = [
    ("size", c_uint32), ("pid", c_uint32), ("device", c_uint32), ("context", c_uint32), ("stream", c_uint32),
    ("reserved", c_uint32), ("name", c_char_p), ("count", c_uint64), ("ns", c_uint64), ("min_ns", c_uint64),
    ("max_ns", c_uint64), ("copies", c_uint64), ("copy_bytes", c_uint64), ("copy_ns", c_uint64),
]
GpuTraceOptions._fields_ = [
    ("size", c_uint32), ("reserved", c_uint32), ("ctx", c_void_p),
    ("on_op", ctypes.CFUNCTYPE(None, c_void_p, POINTER(GpuOp))),
    ("on_state", ctypes.CFUNCTYPE(None, c_void_p, POINTER(GpuProcess))),
]
MetricInfo._fields_ = [
    ("size", c_uint32), ("metric", c_uint32), ("name", c_char_p), ("type", c_char_p), ("kind", c_char_p),
    ("unit", c_char_p), ("group", c_char_p), ("help", c_char_p), ("prometheus", c_char_p),
    ("prometheus_labels", c_char_p), ("scale", c_double), ("otlp", c_char_p), ("otlp_attribute", c_char_p),
    ("otlp_unit", c_char_p), ("default_hz", c_double), ("otlp_linux", c_char_p), ("otlp_linux_unit", c_char_p),
    ("has_average", c_uint32), ("reserved", c_uint32),
]
MetricBackend._fields_ = [
    ("size", c_uint32), ("exactness", c_uint32), ("on_request", c_uint32), ("reserved", c_uint32), ("how", c_char_p),
]
ProcessId._fields_ = [
    ("pid", c_uint32), ("ppid", c_uint32), ("start_ns", c_uint64), ("start_raw_ns", c_uint64),
]
ProcessThread._fields_ = [
    ("tid", c_uint32), ("reserved", c_uint32), ("start_ns", c_uint64), ("has", MetricSet), ("cpu_ns", c_uint64),
    ("cpu_user_ns", c_uint64), ("cpu_kernel_ns", c_uint64),
]
RollupOptions._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("max_rows", c_uint32), ("reserved", c_uint32),
]
RollupRow._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("first_ns", c_uint64), ("sum", POINTER(Sample)),
]
RollupInfo._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("last_ns", c_uint64), ("cpu_ns", c_uint64), ("active", c_uint64),
    ("unlisted", c_uint64), ("unlisted_cpu_ns", c_uint64),
]
Provider._fields_ = [
    ("size", c_uint32), ("level", c_uint32), ("name", c_char_p), ("keywords", c_uint64), ("pids", POINTER(c_uint32)),
    ("pid_count", c_uint32), ("event_id_count", c_uint32), ("event_ids", POINTER(c_uint16)),
]
RecorderStats._fields_ = [
    ("size", c_uint32), ("running", c_uint32), ("duration_ns", c_uint64), ("file_bytes", c_uint64),
    ("events_lost", c_uint64), ("buffers_lost", c_uint64), ("buffers_written", c_uint64),
]
SessionInfo._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("name", c_char_p), ("buffer_kb", c_uint32), ("min_buffers", c_uint32),
    ("max_buffers", c_uint32), ("buffers", c_uint32), ("free_buffers", c_uint32), ("buffers_written", c_uint32),
    ("events_lost", c_uint32), ("buffers_lost", c_uint32), ("real_time_buffers_lost", c_uint32),
    ("log_mode", c_uint32), ("clock", c_uint32), ("kernel_flags", c_uint32), ("flush_s", c_uint32),
    ("file", c_char_p), ("kernel", c_char_p),
]
SinkOptions._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("host", c_char_p), ("os", c_char_p), ("columns", POINTER(c_char_p)),
    ("column_count", c_uint32), ("block_ms", c_uint32), ("width", c_uint32), ("reserved", c_uint32),
    ("utc_offset_s", ctypes.CFUNCTYPE(c_int32, c_uint64)),
]
Window._fields_ = [
    ("size", c_uint32), ("source", c_uint32), ("flags", c_uint32), ("pid", c_uint32), ("start_ns", c_uint64),
    ("t_ns", c_uint64), ("dt_ns", c_uint64), ("name", c_char_p), ("cpu_percent", Aggregate), ("rss_bytes", Aggregate),
    ("more", MetricSet), ("more_spreads", POINTER(Aggregate)),
]
Windows._fields_ = [
    ("size", c_uint32), ("stride", c_uint32), ("count", c_size_t), ("items", POINTER(Window)),
]
TraceSummary._fields_ = [
    ("size", c_uint32), ("file_count", c_uint32), ("files", POINTER(TraceFile)), ("stats", POINTER(TraceStats)),
    ("system", POINTER(TraceSystem)), ("from_ns", c_uint64), ("until_ns", c_uint64),
]
Operator._fields_ = [
    ("size", c_uint32), ("pool_threads", c_uint32), ("node", c_char_p), ("provider", c_char_p),
    ("inference_ns", c_uint64), ("pool_percent", c_double), ("span", POINTER(Span)),
]
ProbesOptions._fields_ = [
    ("size", c_uint32), ("flags", c_uint32),
]
ProbesStats._fields_ = [
    ("size", c_uint32), ("libraries", c_uint32), ("unusable", c_uint32), ("reserved", c_uint32), ("spans", c_uint64),
    ("lost", c_uint64), ("problem", c_char * 160),
]
SpansOptions._fields_ = [
    ("size", c_uint32), ("reserved", c_uint32), ("history_ns", c_uint64), ("history_max", c_uint64),
    ("ctx", c_void_p), ("on_span", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Span))),
    ("on_operator", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Operator))),
]
Strip._fields_ = [
    ("size", c_uint32), ("state", c_uint32), ("tid", c_uint32), ("cpu", c_uint32), ("from_ns", c_uint64),
    ("to_ns", c_uint64), ("name", c_char_p),
]
SpanGroup._fields_ = [
    ("size", c_uint32), ("kind", c_uint32), ("name", c_char_p), ("session", c_char_p), ("count", c_uint64),
    ("failed", c_uint64), ("incomplete", c_uint64), ("first_ns", c_uint64), ("last_ns", c_uint64),
    ("p50_ns", c_uint64), ("p95_ns", c_uint64), ("p99_ns", c_uint64), ("max_ns", c_uint64), ("mean_ns", c_uint64),
    ("cold_ns", c_uint64), ("total", c_uint64 * 9), ("helper_cpu_ns", c_uint64), ("helper_ready_ns", c_uint64),
    ("shared_cpu_ns", c_uint64), ("wait_cpu_ns", c_uint64), ("preempted", c_uint64), ("fault_count", c_uint64),
    ("helpers", c_uint32), ("cause_count", c_uint32), ("causes", Cause * 6), ("slow_count", c_uint64),
    ("slow_mean_ns", c_uint64), ("typical_mean_ns", c_uint64), ("excess_ns", c_int64 * 9),
    ("slow_cause_count", c_uint32), ("flags", c_uint32), ("slow_causes", Cause * 6), ("gpu_ns", c_uint64),
    ("wait_gpu_ns", c_uint64), ("gpu_kernels", c_uint64),
]
SummaryOptions._fields_ = [
    ("size", c_uint32), ("max_processes", c_uint32),
    ("on_samples", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Samples))), ("ctx", c_void_p),
    ("on_devices", ctypes.CFUNCTYPE(None, c_void_p, POINTER(Devices))),
]
SummaryThread._fields_ = [
    ("tid", c_uint32), ("reserved", c_uint32), ("cycles", c_uint64),
]
SummaryProcess._fields_ = [
    ("size", c_uint32), ("flags", c_uint32), ("first_ns", c_uint64), ("last_ns", c_uint64), ("samples", c_uint64),
    ("sample", POINTER(Sample)), ("metrics", POINTER(Aggregate)), ("metric_count", c_uint32),
    ("thread_count", c_uint32), ("threads", POINTER(SummaryThread)), ("sums", POINTER(Aggregate)),
    ("sum_count", c_uint32), ("reserved", c_uint32),
]
System._fields_ = [
    ("size", c_uint32), ("cpu_count", c_uint32), ("t_ns", c_uint64), ("dt_ns", c_uint64),
    ("cpu_percents", POINTER(c_double)), ("has", MetricSet), ("estimated", MetricSet), ("cpu_percent", c_double),
    ("load_1", c_double), ("load_5", c_double), ("load_15", c_double), ("memory_total_bytes", c_uint64),
    ("memory_available_bytes", c_uint64), ("swap_total_bytes", c_uint64), ("swap_used_bytes", c_uint64),
    ("paged_in_bytes", c_uint64), ("paged_out_bytes", c_uint64), ("disk_read_bytes", c_uint64),
    ("disk_write_bytes", c_uint64), ("net_received_bytes", c_uint64), ("net_sent_bytes", c_uint64),
    ("processes", c_uint64), ("threads", c_uint64), ("threads_running", c_uint64), ("threads_started", c_uint64),
    ("threads_ended", c_uint64), ("switches", c_uint64), ("processes_started", c_uint64),
    ("processes_ended", c_uint64),
]
WaitsThread._fields_ = [
    ("size", c_uint32), ("pid", c_uint32), ("tid", c_uint32), ("reserved", c_uint32), ("name", c_char_p),
    ("run_ns", c_uint64), ("ready_ns", c_uint64), ("sleep_ns", c_uint64), ("blocked_ns", c_uint64),
    ("fault_ns", c_uint64), ("disk_ns", c_uint64), ("sleeps", c_uint64), ("blocks", c_uint64),
    ("wait_max_ns", c_uint64), ("switches", c_uint64), ("preempted", c_uint64),
]
WaitsEdge._fields_ = [
    ("size", c_uint32), ("pid", c_uint32), ("tid", c_uint32), ("waker_pid", c_uint32), ("waker_tid", c_uint32),
    ("reserved", c_uint32), ("name", c_char_p), ("waker_name", c_char_p), ("count", c_uint64), ("wait_ns", c_uint64),
    ("wait_max_ns", c_uint64), ("blocked_ns", c_uint64), ("ready_ns", c_uint64),
]
WaitsInfo._fields_ = [
    ("size", c_uint32), ("thread_count", c_uint32), ("edge_count", c_uint32), ("reserved", c_uint32),
    ("events", c_uint64), ("dropped", c_uint64),
]
WindowMetric._fields_ = [
    ("metric", c_uint32), ("values", c_uint32),
]
AggregatorOptions._fields_ = [
    ("size", c_uint32), ("metric_count", c_uint32), ("length_ns", c_uint64), ("metrics", POINTER(WindowMetric)),
    ("on_window", ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Window))), ("ctx", c_void_p),
]

# The structs by their C name.
STRUCTS: Dict[str, Any] = {
    "etwatch_error_info": ErrorInfo,
    "etwatch_metric_set": MetricSet,
    "etwatch_sample": Sample,
    "etwatch_samples": Samples,
    "etwatch_event": Event,
    "etwatch_events": Events,
    "etwatch_loss": Loss,
    "etwatch_alert_thread": AlertThread,
    "etwatch_alert": Alert,
    "etwatch_devices": Devices,
    "etwatch_callbacks": Callbacks,
    "etwatch_session_options": SessionOptions,
    "etwatch_rate": Rate,
    "etwatch_config": Config,
    "etwatch_stats": Stats,
    "etwatch_meta": Meta,
    "etwatch_aggregate": Aggregate,
    "etwatch_check": Check,
    "etwatch_trace_options": TraceOptions,
    "etwatch_trace_file": TraceFile,
    "etwatch_trace_stats": TraceStats,
    "etwatch_field": Field,
    "etwatch_trace_event": TraceEvent,
    "etwatch_trace_class": TraceClass,
    "etwatch_trace_image": TraceImage,
    "etwatch_trace_system": TraceSystem,
    "etwatch_report_callbacks": ReportCallbacks,
    "etwatch_span": Span,
    "etwatch_account_options": AccountOptions,
    "ArrowSchema": ArrowSchema,
    "ArrowArray": ArrowArray,
    "ArrowArrayStream": ArrowArrayStream,
    "etwatch_event_filter": EventFilter,
    "etwatch_table_options": TableOptions,
    "etwatch_collector_stats": CollectorStats,
    "etwatch_consumer_options": ConsumerOptions,
    "etwatch_consumer_stats": ConsumerStats,
    "etwatch_device_process": DeviceProcess,
    "etwatch_device": Device,
    "etwatch_device_options": DeviceOptions,
    "etwatch_export_counts": ExportCounts,
    "etwatch_gpu_op": GpuOp,
    "etwatch_gpu_process": GpuProcess,
    "etwatch_gpu_sum": GpuSum,
    "etwatch_gpu_trace_options": GpuTraceOptions,
    "etwatch_metric_info": MetricInfo,
    "etwatch_metric_backend": MetricBackend,
    "etwatch_process_id": ProcessId,
    "etwatch_process_thread": ProcessThread,
    "etwatch_rollup_options": RollupOptions,
    "etwatch_rollup_row": RollupRow,
    "etwatch_rollup_info": RollupInfo,
    "etwatch_provider": Provider,
    "etwatch_recorder_stats": RecorderStats,
    "etwatch_session_info": SessionInfo,
    "etwatch_sink_options": SinkOptions,
    "etwatch_window": Window,
    "etwatch_windows": Windows,
    "etwatch_trace_summary": TraceSummary,
    "etwatch_cause": Cause,
    "etwatch_operator": Operator,
    "etwatch_probes_options": ProbesOptions,
    "etwatch_probes_stats": ProbesStats,
    "etwatch_spans_options": SpansOptions,
    "etwatch_strip": Strip,
    "etwatch_span_group": SpanGroup,
    "etwatch_summary_options": SummaryOptions,
    "etwatch_summary_thread": SummaryThread,
    "etwatch_summary_process": SummaryProcess,
    "etwatch_system": System,
    "etwatch_waits_thread": WaitsThread,
    "etwatch_waits_edge": WaitsEdge,
    "etwatch_waits_info": WaitsInfo,
    "etwatch_window_metric": WindowMetric,
    "etwatch_aggregator_options": AggregatorOptions,
}

# Function: what it returns, what it takes.
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "etwatch_version": (c_char_p, []),
    "etwatch_strerror": (c_char_p, [c_int]),
    "etwatch_source_name": (c_char_p, [c_uint32]),
    "etwatch_alert_check": (c_int, [c_char_p, POINTER(c_uint32), POINTER(ErrorInfo)]),
    "etwatch_monitor_new": (c_int, [POINTER(Config), POINTER(Callbacks), POINTER(c_void_p), POINTER(ErrorInfo)]),
    "etwatch_monitor_free": (None, [c_void_p]),
    "etwatch_monitor_start": (c_int, [c_void_p, POINTER(ErrorInfo)]),
    "etwatch_monitor_open": (c_int, [c_void_p, POINTER(ErrorInfo)]),
    "etwatch_monitor_poll": (c_int, [c_void_p, c_int, POINTER(ErrorInfo)]),
    "etwatch_monitor_stop": (c_int, [c_void_p]),
    "etwatch_monitor_last_error": (c_int, [c_void_p, POINTER(ErrorInfo)]),
    "etwatch_monitor_read": (c_int, [c_void_p, c_size_t, c_int, POINTER(Samples)]),
    "etwatch_monitor_read_copy": (c_int, [
        c_void_p, c_void_p, c_size_t, c_size_t, c_int, POINTER(Samples), POINTER(c_size_t),
    ]),
    "etwatch_monitor_add": (c_int, [c_void_p, c_uint32]),
    "etwatch_monitor_remove": (c_int, [c_void_p, c_uint32]),
    "etwatch_monitor_snapshot": (c_int, [c_void_p, c_uint32, POINTER(Sample), c_char_p, c_size_t]),
    "etwatch_monitor_aggregate": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(Aggregate)]),
    "etwatch_monitor_stats": (c_int, [c_void_p, POINTER(Stats)]),
    "etwatch_monitor_meta": (c_int, [c_void_p, POINTER(Meta)]),
    "etwatch_doctor": (c_int, [c_char_p, ctypes.CFUNCTYPE(None, c_void_p, POINTER(Check)), c_void_p]),
    "etwatch_trace_open": (c_int, [
        POINTER(c_char_p), c_size_t, POINTER(TraceOptions), POINTER(c_void_p), POINTER(ErrorInfo),
    ]),
    "etwatch_trace_free": (None, [c_void_p]),
    "etwatch_trace_file_count": (c_size_t, [c_void_p]),
    "etwatch_trace_file": (c_int, [c_void_p, c_size_t, POINTER(TraceFile)]),
    "etwatch_trace_stats": (c_int, [c_void_p, POINTER(TraceStats)]),
    "etwatch_trace_next": (c_int, [c_void_p, POINTER(TraceEvent), POINTER(ErrorInfo)]),
    "etwatch_trace_fields": (c_int, [c_void_p, POINTER(TraceEvent)]),
    "etwatch_trace_rewind": (c_int, [c_void_p]),
    "etwatch_trace_sample": (POINTER(Sample), [c_void_p]),
    "etwatch_trace_sched_event": (POINTER(Event), [c_void_p]),
    "etwatch_trace_meta": (c_int, [c_void_p, c_size_t, POINTER(Meta)]),
    "etwatch_trace_report": (c_int, [c_void_p, POINTER(ReportCallbacks), POINTER(TraceSystem), POINTER(ErrorInfo)]),
    "etwatch_trace_spans": (c_int, [
        c_void_p, ctypes.CFUNCTYPE(None, c_void_p, POINTER(Span)), c_void_p, POINTER(ErrorInfo),
    ]),
    "etwatch_account_new": (c_int, [POINTER(AccountOptions), POINTER(c_void_p)]),
    "etwatch_account_free": (None, [c_void_p]),
    "etwatch_account_add_meta": (c_int, [c_void_p, POINTER(Meta)]),
    "etwatch_account_add_sample": (c_int, [c_void_p, POINTER(Sample)]),
    "etwatch_account_add_event": (c_int, [c_void_p, POINTER(Event)]),
    "etwatch_account_add_loss": (c_int, [c_void_p, POINTER(Loss)]),
    "etwatch_account_add_alert": (c_int, [c_void_p, POINTER(Alert)]),
    "etwatch_account_add_stats": (c_int, [c_void_p, POINTER(Stats)]),
    "etwatch_account_stats": (c_int, [c_void_p, POINTER(TraceStats)]),
    "etwatch_account_report": (c_int, [c_void_p, POINTER(ReportCallbacks)]),
    "etwatch_table_name": (c_char_p, [c_uint32]),
    "etwatch_trace_table": (c_int, [
        c_void_p, c_uint32, POINTER(TableOptions), POINTER(ArrowArrayStream), POINTER(ErrorInfo),
    ]),
    "etwatch_collector_new": (c_int, [POINTER(TableOptions), POINTER(c_void_p), POINTER(ErrorInfo)]),
    "etwatch_collector_free": (None, [c_void_p]),
    "etwatch_collector_on_samples": (None, [c_void_p, POINTER(Samples)]),
    "etwatch_collector_on_events": (None, [c_void_p, POINTER(Events)]),
    "etwatch_collector_on_devices": (None, [c_void_p, POINTER(Devices)]),
    "etwatch_collector_on_span": (None, [c_void_p, POINTER(Span)]),
    "etwatch_collector_on_operator": (None, [c_void_p, POINTER(Operator)]),
    "etwatch_collector_stats": (c_int, [c_void_p, POINTER(CollectorStats)]),
    "etwatch_collector_table": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(ArrowArrayStream)]),
    "etwatch_arrow_write": (c_int, [
        POINTER(ArrowArrayStream), etwatch_write_fn, c_void_p, POINTER(c_uint64), POINTER(ErrorInfo),
    ]),
    "etwatch_table_write": (c_int, [
        POINTER(ArrowArrayStream), c_uint32, c_char_p, etwatch_write_fn, c_void_p, POINTER(c_uint64),
        POINTER(ErrorInfo),
    ]),
    "etwatch_consumer_open": (c_int, [POINTER(ConsumerOptions), POINTER(c_void_p), POINTER(ErrorInfo)]),
    "etwatch_consumer_free": (None, [c_void_p]),
    "etwatch_consumer_poll": (c_int, [c_void_p, c_int, etwatch_event_fn, c_void_p, POINTER(ErrorInfo)]),
    "etwatch_consumer_stop": (None, [c_void_p]),
    "etwatch_consumer_stream": (c_int, [
        c_void_p, c_int, POINTER(TableOptions), POINTER(ArrowArrayStream), POINTER(ErrorInfo),
    ]),
    "etwatch_consumer_stats": (c_int, [c_void_p, POINTER(ConsumerStats)]),
    "etwatch_device_kind_name": (c_char_p, [c_uint32]),
    "etwatch_device_reader_open": (c_int, [POINTER(DeviceOptions), POINTER(c_void_p)]),
    "etwatch_device_reader_read": (c_int, [c_void_p, c_int, POINTER(Devices)]),
    "etwatch_device_reader_close": (None, [c_void_p]),
    "etwatch_export_name": (c_char_p, [c_uint32]),
    "etwatch_trace_export": (c_int, [
        c_void_p, c_uint32, c_uint32, POINTER(TableOptions), etwatch_write_fn, c_void_p, POINTER(ExportCounts),
        POINTER(TraceStats), POINTER(ErrorInfo),
    ]),
    "etwatch_gpu_op_kind_name": (c_char_p, [c_uint32]),
    "etwatch_gpu_copy_name": (c_char_p, [c_uint32]),
    "etwatch_gpu_state_name": (c_char_p, [c_uint32]),
    "etwatch_gpu_trace_new": (c_int, [POINTER(GpuTraceOptions), POINTER(c_void_p), POINTER(ErrorInfo)]),
    "etwatch_gpu_trace_free": (None, [c_void_p]),
    "etwatch_gpu_trace_address": (c_char_p, [c_void_p]),
    "etwatch_gpu_trace_read": (c_int, [c_void_p, c_int64, c_int]),
    "etwatch_gpu_trace_process": (c_int, [c_void_p, c_uint32, POINTER(GpuProcess)]),
    "etwatch_gpu_trace_kernel": (c_int, [c_void_p, c_uint32, POINTER(GpuSum)]),
    "etwatch_gpu_trace_stream": (c_int, [c_void_p, c_uint32, POINTER(GpuSum)]),
    "etwatch_gpu_trace_refused": (c_uint64, [c_void_p]),
    "etwatch_backend_name": (c_char_p, [c_uint32]),
    "etwatch_exactness_name": (c_char_p, [c_uint32]),
    "etwatch_metric_info": (c_int, [c_uint32, POINTER(MetricInfo)]),
    "etwatch_metric_backend": (c_int, [c_uint32, c_uint32, POINTER(MetricBackend)]),
    "etwatch_metrics_named": (c_int, [c_char_p, POINTER(MetricSet)]),
    "etwatch_metrics_pollable": (None, [POINTER(MetricSet)]),
    "etwatch_monitor_unavailable_reason": (c_char_p, [c_void_p, c_uint32]),
    "etwatch_process_read": (c_int, [
        c_uint32, c_uint32, POINTER(Sample), c_char_p, c_size_t, POINTER(ProcessId), POINTER(ErrorInfo),
    ]),
    "etwatch_process_threads": (c_int, [c_uint32, POINTER(ProcessThread), c_size_t, POINTER(ErrorInfo)]),
    "etwatch_process_list": (c_int, [POINTER(ProcessId), c_size_t, POINTER(ErrorInfo)]),
    "etwatch_rollup_new": (c_int, [POINTER(RollupOptions), POINTER(c_void_p)]),
    "etwatch_rollup_free": (None, [c_void_p]),
    "etwatch_rollup_add": (c_int, [c_void_p, POINTER(Sample)]),
    "etwatch_rollup_next": (c_int, [c_void_p]),
    "etwatch_rollup_sort": (c_int, [c_void_p, c_uint32, c_uint32]),
    "etwatch_rollup_row": (c_int, [c_void_p, c_uint32, POINTER(RollupRow)]),
    "etwatch_rollup_info": (c_int, [c_void_p, POINTER(RollupInfo)]),
    "etwatch_session_kernel_name": (c_char_p, [c_uint32]),
    "etwatch_monitor_set_kernel": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(ErrorInfo)]),
    "etwatch_recorder_start": (c_int, [c_char_p, POINTER(SessionOptions), POINTER(c_void_p), POINTER(ErrorInfo)]),
    "etwatch_recorder_stats": (c_int, [c_void_p, POINTER(RecorderStats)]),
    "etwatch_recorder_unavailable_reason": (c_char_p, [c_void_p, c_uint32]),
    "etwatch_recorder_stop": (c_int, [c_void_p]),
    "etwatch_recorder_free": (None, [c_void_p]),
    "etwatch_session_list": (c_int, [
        ctypes.CFUNCTYPE(None, c_void_p, POINTER(SessionInfo)), c_void_p, POINTER(ErrorInfo),
    ]),
    "etwatch_session_cleanup": (c_int, [POINTER(ErrorInfo)]),
    "etwatch_sink_new": (c_int, [
        c_uint32, etwatch_write_fn, c_void_p, POINTER(SinkOptions), POINTER(c_void_p), POINTER(ErrorInfo),
    ]),
    "etwatch_alert_text": (c_int, [POINTER(Alert), c_char_p, c_size_t]),
    "etwatch_sink_free": (None, [c_void_p]),
    "etwatch_sink_meta": (c_int, [c_void_p, POINTER(Meta)]),
    "etwatch_sink_samples": (c_int, [c_void_p, POINTER(Samples)]),
    "etwatch_sink_events": (c_int, [c_void_p, POINTER(Events)]),
    "etwatch_sink_windows": (c_int, [c_void_p, POINTER(Windows)]),
    "etwatch_sink_loss": (c_int, [c_void_p, POINTER(Loss)]),
    "etwatch_sink_alert": (c_int, [c_void_p, POINTER(Alert)]),
    "etwatch_sink_span": (c_int, [c_void_p, POINTER(Span)]),
    "etwatch_sink_operator": (c_int, [c_void_p, POINTER(Operator)]),
    "etwatch_sink_span_group": (c_int, [c_void_p, POINTER(SpanGroup)]),
    "etwatch_sink_system": (c_int, [c_void_p, POINTER(System)]),
    "etwatch_sink_devices": (c_int, [c_void_p, POINTER(Devices)]),
    "etwatch_sink_gpu_op": (c_int, [c_void_p, POINTER(GpuOp)]),
    "etwatch_sink_gpu_process": (c_int, [c_void_p, POINTER(GpuProcess)]),
    "etwatch_sink_gpu_sum": (c_int, [c_void_p, POINTER(GpuSum)]),
    "etwatch_sink_stats": (c_int, [c_void_p, POINTER(Stats)]),
    "etwatch_sink_flush": (c_int, [c_void_p]),
    "etwatch_sink_name": (c_int, [c_void_p, c_uint32, c_char_p]),
    "etwatch_sink_restart": (c_int, [c_void_p]),
    "etwatch_sink_trace": (c_int, [c_void_p, POINTER(TraceSummary)]),
    "etwatch_sink_class": (c_int, [c_void_p, POINTER(TraceClass)]),
    "etwatch_sink_process": (c_int, [c_void_p, POINTER(Sample), POINTER(MetricSet)]),
    "etwatch_sink_image": (c_int, [c_void_p, POINTER(TraceImage)]),
    "etwatch_sink_end": (c_int, [c_void_p]),
    "etwatch_sink_trace_event": (c_int, [c_void_p, POINTER(TraceEvent)]),
    "etwatch_sink_wants_fields": (c_int, [c_void_p, POINTER(TraceEvent)]),
    "etwatch_sink_column": (c_char_p, [c_uint32]),
    "etwatch_marks_new": (c_int, [POINTER(c_void_p)]),
    "etwatch_marks_free": (None, [c_void_p]),
    "etwatch_span_begin": (c_uint64, [c_void_p]),
    "etwatch_span_end": (None, [c_void_p, c_uint64, c_char_p, c_char_p]),
    "etwatch_span_kind_name": (c_char_p, [c_uint32]),
    "etwatch_cause_name": (c_char_p, [c_uint32]),
    "etwatch_receiver_new": (c_int, [POINTER(c_void_p), POINTER(ErrorInfo)]),
    "etwatch_receiver_free": (None, [c_void_p]),
    "etwatch_receiver_address": (c_char_p, [c_void_p]),
    "etwatch_receiver_read": (c_int, [
        c_void_p, c_int64, c_int, ctypes.CFUNCTYPE(None, c_void_p, POINTER(Span)), c_void_p,
    ]),
    "etwatch_receiver_operators": (c_int, [
        c_void_p, c_int64, ctypes.CFUNCTYPE(None, c_void_p, POINTER(Operator)), c_void_p,
    ]),
    "etwatch_receiver_lost_operators": (c_uint64, [c_void_p]),
    "etwatch_receiver_lost": (c_uint64, [c_void_p]),
    "etwatch_probes_new": (c_int, [POINTER(ProbesOptions), POINTER(c_void_p), POINTER(ErrorInfo)]),
    "etwatch_probes_free": (None, [c_void_p]),
    "etwatch_probes_add_process": (c_int, [c_void_p, c_uint32]),
    "etwatch_probes_read": (c_int, [c_void_p, c_int64, ctypes.CFUNCTYPE(None, c_void_p, POINTER(Span)), c_void_p]),
    "etwatch_probes_stats": (c_int, [c_void_p, POINTER(ProbesStats)]),
    "etwatch_spans_new": (c_int, [POINTER(SpansOptions), POINTER(c_void_p)]),
    "etwatch_spans_free": (None, [c_void_p]),
    "etwatch_spans_add_process": (c_int, [c_void_p, c_uint32, c_char_p]),
    "etwatch_spans_add_event": (c_int, [c_void_p, POINTER(Event)]),
    "etwatch_spans_add_loss": (c_int, [c_void_p, POINTER(Loss)]),
    "etwatch_spans_add_gpu_op": (c_int, [c_void_p, POINTER(GpuOp)]),
    "etwatch_spans_add_gpu_process": (c_int, [c_void_p, POINTER(GpuProcess)]),
    "etwatch_spans_late_gpu_ops": (c_uint64, [c_void_p]),
    "etwatch_spans_on_samples": (None, [c_void_p, POINTER(Samples)]),
    "etwatch_spans_on_events": (None, [c_void_p, POINTER(Events)]),
    "etwatch_spans_on_loss": (None, [c_void_p, POINTER(Loss)]),
    "etwatch_spans_add": (c_int, [c_void_p, POINTER(Span)]),
    "etwatch_spans_add_operator": (c_int, [c_void_p, POINTER(Operator)]),
    "etwatch_spans_advance": (c_int, [c_void_p, c_uint64]),
    "etwatch_spans_dropped": (c_uint64, [c_void_p]),
    "etwatch_spans_strips": (c_int, [
        c_void_p, c_uint32, c_uint64, c_uint64, ctypes.CFUNCTYPE(None, c_void_p, POINTER(Strip)), c_void_p,
    ]),
    "etwatch_spans_group": (c_int, [c_void_p, c_uint32, POINTER(SpanGroup)]),
    "etwatch_spans_clear": (c_int, [c_void_p]),
    "etwatch_spans_forget": (c_int, [c_void_p, c_uint64]),
    "etwatch_span_group_text": (c_int, [POINTER(SpanGroup), c_char_p, c_size_t]),
    "etwatch_summary_new": (c_int, [POINTER(SummaryOptions), POINTER(c_void_p)]),
    "etwatch_summary_free": (None, [c_void_p]),
    "etwatch_summary_add": (None, [c_void_p, POINTER(Samples)]),
    "etwatch_summary_on_devices": (None, [c_void_p, POINTER(Devices)]),
    "etwatch_summary_for_each": (c_int, [
        c_void_p, c_uint32, ctypes.CFUNCTYPE(None, c_void_p, POINTER(SummaryProcess)), c_void_p,
    ]),
    "etwatch_summary_dropped": (c_uint64, [c_void_p]),
    "etwatch_system_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "etwatch_system_read": (c_int, [c_void_p, POINTER(System)]),
    "etwatch_system_close": (None, [c_void_p]),
    "etwatch_system_set_process_counts": (None, [c_void_p, c_uint64, c_uint64]),
    "etwatch_system_os_name": (c_char_p, [c_uint32]),
    "etwatch_system_info": (c_int, [c_uint32, POINTER(MetricInfo)]),
    "etwatch_system_backend": (c_int, [c_uint32, c_uint32, POINTER(MetricBackend)]),
    "etwatch_waits_new": (c_int, [POINTER(c_void_p)]),
    "etwatch_waits_free": (None, [c_void_p]),
    "etwatch_waits_add": (c_int, [c_void_p, POINTER(Event)]),
    "etwatch_waits_add_loss": (c_int, [c_void_p, c_uint32, POINTER(Loss)]),
    "etwatch_waits_read": (c_int, [c_void_p, c_void_p, POINTER(ErrorInfo)]),
    "etwatch_waits_end": (c_int, [c_void_p]),
    "etwatch_waits_info": (c_int, [c_void_p, POINTER(WaitsInfo)]),
    "etwatch_waits_thread": (c_int, [c_void_p, c_uint32, POINTER(WaitsThread)]),
    "etwatch_waits_edge": (c_int, [c_void_p, c_uint32, POINTER(WaitsEdge)]),
    "etwatch_aggregator_new": (c_int, [POINTER(AggregatorOptions), POINTER(c_void_p), POINTER(ErrorInfo)]),
    "etwatch_aggregator_free": (None, [c_void_p]),
    "etwatch_aggregator_add": (c_int, [c_void_p, POINTER(Sample)]),
    "etwatch_aggregator_end": (c_int, [c_void_p]),
    "etwatch_aggregator_dropped": (c_uint64, [c_void_p]),
}
