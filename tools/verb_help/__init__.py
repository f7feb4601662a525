# SPDX-License-Identifier: Apache-2.0
"""The command's verbs, their help, and completion for shells."""
