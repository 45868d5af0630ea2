/** What implementations of the library share with its API; not for engines. */
package io.deepep.spi;
