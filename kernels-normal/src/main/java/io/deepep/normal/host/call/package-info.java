/** How ranks meet in a call, wait for each other, and learn that one gave up. */
package io.deepep.normal.host.call;
