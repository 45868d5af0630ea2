/**
 * What the modules of this library share below the API: operations, layouts of memory, providers.
 * Not for engines, and exported to no other module.
 */
package io.deepep.spi;
