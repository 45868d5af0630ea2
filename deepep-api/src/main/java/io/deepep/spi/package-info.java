/**
 * What the modules of this library share below the API: operations, layouts of memory, providers.
 * Not for engines, and exported only to these modules.
 */
package io.deepep.spi;
