# SPDX-License-Identifier: MIT
"""The bench driver: one module per section, and shared code."""
