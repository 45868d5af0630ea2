/** Who sends what to whom: global routings, recorded or generated, and tokens to go with them. */
package io.deepep.testkit.routing;
