# SPDX-License-Identifier: Apache-2.0
"""Repairs in two steps: a plan that is read and kept, and a new directory that is made from it."""
