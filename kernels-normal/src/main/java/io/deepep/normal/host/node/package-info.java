/** Rows, and what travels beside them, among the ranks of one node. */
package io.deepep.normal.host.node;
