/**
 * {@code deepep plan}: options to plans of {@link io.deepep.planner}, and plans to tables, JSON and
 * plots.
 */
package io.deepep.bench.plan;
