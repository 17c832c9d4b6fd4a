# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2034
# The brokers the tests run against.
KP_KAFKA_VERSION=4.4.0
KP_OLD_VERSIONS="3.9.1 2.8.2 1.1.1 0.11.0.3 0.10.2.2 0.9.0.1"
