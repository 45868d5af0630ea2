/**
 * The planner: buffer sizes, bytes per link and predicted times of a model on a cluster, without
 * the cluster. Data goes one way: {@link io.deepep.planner.TokenSource} (who selects what) → {@link
 * io.deepep.planner.Simulation} (rows per link) → {@link io.deepep.planner.OperationPlan} (bytes
 * and time, with the costs of a {@link io.deepep.planner.Profile}) → {@link
 * io.deepep.planner.ModePlan}.
 */
package io.deepep.planner;
