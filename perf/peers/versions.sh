# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh disable=SC2034
# The clients that libkp is measured against; franz-go's version stands in
# franz-go/go.mod.  The newest of each when METHOD.md's table was taken.
CONFLUENT_KAFKA_VERSION=2.16.1 # carries librdkafka 2.16.0
KAFKA_CLIENTS_VERSION=4.4.0
AIOKAFKA_VERSION=0.14.0
