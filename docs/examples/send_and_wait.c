/* SPDX-License-Identifier: BSD-2-Clause */
/* send_and_wait SERVERS TOPIC: one record, and where the brokers put it. */
#include <kp/kp.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    kp_config *config;
    kp_producer *producer;
    kp_error why;
    kp_future future;
    kp_report report;
    if (argc != 3 || kp_config_create(&config) != KP_OK)
        return fprintf(stderr, "usage: %s SERVERS TOPIC\n", argv[0]), 2;
    kp_config_on_log(config, KP_LOG_WARN, kp_log_stderr, NULL);
    if (kp_config_set(config, "bootstrap.servers", argv[1], &why) != KP_OK ||
        kp_producer_create(&producer, config, &why) != KP_OK)
        return fprintf(stderr, "%s\n", why.text), 1;
    kp_config_destroy(config);
    kp_record record = {.topic = argv[2], .value = kp_str("hello")};
    (void)kp_send(producer, &record, &future); /* a failure is in the future */
    kp_err err = kp_future_wait(&future, KP_FOREVER, &report);
    printf("%s: partition %d, offset %lld\n", kp_err_name(err),
           (int)report.partition, (long long)report.offset);
    kp_future_release(&future, 1);
    return kp_producer_destroy(producer) != KP_OK || err != KP_OK;
}
