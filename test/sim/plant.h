/* SPDX-License-Identifier: BSD-2-Clause */
/* plant.h - in front of each source of the variant `planted`: is fault n the
 * one that acts?  (test/sim/planted) */
#ifndef KP_TEST_SIM_PLANT_H
#define KP_TEST_SIM_PLANT_H

extern int kp__planted; /* 0: none */
#define KP_PLANT(n) (kp__planted == (n))

#endif
