# SPDX-License-Identifier: Apache-2.0
"""What survives a crash of a simulated replica: a log in memory, or the real one in files on a disk with faults."""
