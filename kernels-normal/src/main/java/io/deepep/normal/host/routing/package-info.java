/** What a rank knows of a dispatch: where tokens go, and which rows they have there. */
package io.deepep.normal.host.routing;
