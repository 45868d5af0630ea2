/**
 * The planner: buffer sizes, bytes per link and predicted times of a model on a cluster, without
 * the cluster. Data goes one way: {@link io.deepep.bench.plan.TokenSource} (who selects what) →
 * {@link io.deepep.bench.plan.Simulation} (rows per link) → {@link
 * io.deepep.bench.plan.OperationPlan} (bytes and time, with the costs of a {@link
 * io.deepep.bench.plan.Profile}) → table, JSON and plot.
 */
package io.deepep.bench.plan;
