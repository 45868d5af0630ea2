/** Examines a machine for {@code deepep doctor}: what it has, what it lacks, and how to get it. */
package io.deepep.doctor;
