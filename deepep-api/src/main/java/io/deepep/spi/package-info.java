/**
 * Interfaces between the modules of this library: operations, layouts of memory, providers. Not for
 * engines; exported only to these modules.
 */
package io.deepep.spi;
