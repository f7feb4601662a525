# SPDX-License-Identifier: Apache-2.0
"""Judgements: what files say of each other, as pure functions over evidence."""
