<#-- The bundle's list of third parties, written by license-maven-plugin. -->
Software in this bundle that is not DeepEP for the JVM
======================================================

runtime/ is a Java runtime made by jlink. Its licences are in runtime/legal.

Device code in lib/deepep-*-nvshmem3.jar below a folder named nvshmem, if there is any, is linked with the device library
of NVIDIA NVSHMEM: https://docs.nvidia.com/nvshmem/api/sla.html

Jars in lib/. Their licence texts are in the jars or at the addresses that follow. JMH (org.openjdk.jmh) is under the GPL
version 2 with the classpath exception; the deepep command runs it as a library, unchanged.

<#list dependencyMap as entry>
<#assign project = entry.getKey()/>
<#assign licenses = entry.getValue()/>
${project.groupId}:${project.artifactId}:${project.version}
    <#list licenses as license>${license}<#sep>; </#list>
    ${project.url!"no address given"}
</#list>
