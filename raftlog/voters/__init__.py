# SPDX-License-Identifier: Apache-2.0
"""Who votes: a voter set as a value, what changes of it are allowed, and its history by offset."""
