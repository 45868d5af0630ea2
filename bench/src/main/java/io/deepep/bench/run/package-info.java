/**
 * What every command needs: the job that the options describe, rank threads with their buffers, and
 * the loop over cases.
 */
package io.deepep.bench.run;
