# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a log's files: surveys of files, and judgements over what they say together."""
