/** What the module's beans have in common. */
package io.deepep.djl.jmx;
