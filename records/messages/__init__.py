# SPDX-License-Identifier: Apache-2.0
"""Messages by schema: control and metadata records, RPCs, and their JSON."""
