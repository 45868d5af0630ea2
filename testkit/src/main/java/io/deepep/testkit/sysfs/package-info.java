/** Hosts' sysfs trees, recorded or made up. {@code record.sh} beside the recordings makes them. */
package io.deepep.testkit.sysfs;
