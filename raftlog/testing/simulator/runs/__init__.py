# SPDX-License-Identifier: Apache-2.0
"""Runs of the simulator: by seed or token, recorded, replayed and shrunk."""
