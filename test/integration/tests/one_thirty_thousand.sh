# SPDX-License-Identifier: BSD-2-Clause
# 30,000 threads, each with 64 KiB of stack, send one record and wait for its
# report, all at the same time; then 30,000 reports are outstanding from eight
# threads that do not wait.
# limit: 120
# shellcheck shell=bash disable=SC1091
. "$KP_IT/lib/test.sh"

must topic_create jobs 4 1
send waiting jobs --threads 30000 --stack-kib 64 --records 1 \
    --reports future --outstanding 1 \
    -X linger.ms=12000 -X batch.size=1000000
check_topic jobs waiting --all-acked --margin-ms 5000
at_least "outstanding reports" "$(finding outstanding | cut -d' ' -f2)" 30000

must topic_create flood 4 1
send flood flood --threads 8 --records 3750 --reports future \
    --outstanding 3750 -X linger.ms=6000 -X batch.size=1000000
check_topic flood flood --all-acked
at_least "outstanding reports" "$(finding outstanding | cut -d' ' -f2)" 30000
at_most "ms in a send" "$(finding blocked-ms | cut -d' ' -f2)" 1
