/** {@code deepep doctor}: what this machine has, what it lacks, and what cures it. */
package io.deepep.doctor;
