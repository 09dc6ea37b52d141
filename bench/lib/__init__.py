# SPDX-License-Identifier: MIT
"""The bench driver: one module per section, and what they share."""
