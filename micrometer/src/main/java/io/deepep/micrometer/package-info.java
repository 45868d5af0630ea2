/** Micrometer meters of dispatch and combine: {@link io.deepep.micrometer.DeepEpMeters}. */
package io.deepep.micrometer;
