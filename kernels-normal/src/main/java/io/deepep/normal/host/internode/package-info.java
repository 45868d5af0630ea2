/** Rows, and what travels beside them, on their way between nodes. */
package io.deepep.normal.host.internode;
