/**
 * Predicts the buffer sizes, the bytes per link and the times of a model on a cluster, without the
 * cluster. Data flows one way: {@link io.deepep.planner.TokenSource} (what each token selects) →
 * {@link io.deepep.planner.Simulation} (rows per link) → {@link io.deepep.planner.OperationPlan}
 * (bytes and time, with the costs of a {@link io.deepep.planner.Profile}) → {@link
 * io.deepep.planner.ModePlan}.
 */
package io.deepep.planner;
