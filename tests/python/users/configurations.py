# SPDX-License-Identifier: MIT
"""The configurations of section 3, word for word."""
import time
from typing import Any, Dict

from etwatch import ETWMonitor

PRODUCTION_CONFIG: Dict[str, Any] = {
    'monitoring': {
        'cpu': {
            'backend': 'psutil',
            'sampling_hz': 50,
            'aggregation': ['avg', 'max', 'p95', 'p99'],
        },
        'memory': {
            'backend': 'psutil',
            'sampling_hz': 10,
            'track_allocations': False,
        },
        'gpu': {
            'backend': 'auto',
            'sampling_hz': 10,
            'metrics': ['utilization', 'memory', 'temperature'],
        },
        'npu': {
            'backend': 'onnx_runtime',
            'enable_profiling': True,
        },
        'storage': {
            'type': 'circular_buffer',
            'max_samples': 100000,
            'persist_to_disk': False,
        },
        'overhead_limit': 5.0,
    }
}

ETW_SESSION_CONFIG: Dict[str, Any] = {
    'session_name': 'OnnxInferenceMonitor',
    'buffer_size': 64,
    'min_buffers': 4,
    'max_buffers': 64,
    'flush_timer': 1,
    'kernel_flags': [
        'EVENT_TRACE_FLAG_PROCESS',
        'EVENT_TRACE_FLAG_THREAD',
        'EVENT_TRACE_FLAG_IMAGE_LOAD',
        'EVENT_TRACE_FLAG_DISK_IO',
        'EVENT_TRACE_FLAG_MEMORY_PAGE',
        'EVENT_TRACE_FLAG_PROFILE',
        'EVENT_TRACE_FLAG_CSWITCH',
    ],
    'cpu_sampling_interval': 1000,
    'stack_walk_enabled': False,
    'process_filter': {
        'include_pids': None,
        'exclude_pids': [0, 4],
        'include_names': None,
        'exclude_names': ['System', 'Idle', 'Registry'],
    },
}

if __name__ == "__main__":
    for name, settings in (("production", PRODUCTION_CONFIG), ("session", ETW_SESSION_CONFIG)):
        monitor = ETWMonitor(settings)
        monitor.start_monitoring()
        time.sleep(0.5)
        samples = monitor.collect_metrics()
        monitor.stop_monitoring()
        monitor.cleanup()
        print(name, monitor.backend, len(samples) > 0)
