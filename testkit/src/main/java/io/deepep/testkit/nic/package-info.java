/**
 * A network card in software: a model of the mlx5 queues that a GPU drives itself (IBGDA), executed
 * by a CPU thread. See docs/software-nic.md.
 */
package io.deepep.testkit.nic;
