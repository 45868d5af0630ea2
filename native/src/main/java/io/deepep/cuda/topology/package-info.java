/**
 * What a host is made of, read from sysfs: GPUs, NICs, the PCI paths between them, and which NICs
 * serve which GPU. Needs neither a driver nor a GPU.
 */
package io.deepep.cuda.topology;
