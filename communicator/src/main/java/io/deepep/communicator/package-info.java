/**
 * The group of ranks when ranks are processes: who they are, from the launcher's variables, and how
 * they meet.
 */
package io.deepep.communicator;
