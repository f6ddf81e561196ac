# Debian packages, made by `cpack --config BUILD/CPackConfig.cmake`:
#   assay              head node, probes of hosts, reports
#   assay-node         the agent alone, for nodes on which nothing may be copied
#   assay-probes-cuda  probes of NVIDIA GPUs, where the CUDA Toolkit was found
#   assay-machine-*    agent and probes of this build for the head of another architecture, which sends them to its nodes; made
#                      alone with -D CPACK_COMPONENTS_ALL=machine, which a cross build can do
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "assay maintainers <maintainers@assay-suite.example>")
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL assay node machine)
if(ASSAY_WITH_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL probes-cuda)
endif()
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)

# Debian's name of the architecture that this build is for.
set(architecture ${CMAKE_SYSTEM_PROCESSOR})
foreach(names x86_64=amd64 aarch64=arm64)
  string(REPLACE "=" ";" names ${names})
  list(GET names 0 machine)
  list(GET names 1 debian)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL machine)
    set(architecture ${debian})
  endif()
endforeach()

set(CPACK_DEBIAN_ASSAY_PACKAGE_NAME assay)
# The head sends its own agent to nodes, which need no package.
set(CPACK_DEBIAN_ASSAY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_ASSAY_PACKAGE_DEPENDS "assay-node (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_ASSAY_PACKAGE_RECOMMENDS "fio, openssh-client, libgloo0")
set(CPACK_DEBIAN_ASSAY_PACKAGE_SUGGESTS "assay-probes-cuda, assay-machine-arm64, chromium | weasyprint, libp11-3")
set(CPACK_COMPONENT_ASSAY_DESCRIPTION
"Acceptance tests of AI-cluster hardware
 Plans, measures, judges and reports whether the machines of a cluster keep
 what was promised of them, and signs a dossier with all evidence that others
 can verify. This package is for the head node and has the probes of hosts.")
set(CPACK_DEBIAN_NODE_PACKAGE_NAME assay-node)
set(CPACK_COMPONENT_NODE_DESCRIPTION
"Agent of assay on a tested node
 Runs the probes of assay on a node, within limits of time and memory. One
 static program. Nodes that are reached over ssh, Slurm or Kubernetes are sent
 it and need no package.")
set(CPACK_DEBIAN_PROBES-CUDA_PACKAGE_NAME assay-probes-cuda)
set(CPACK_DEBIAN_PROBES-CUDA_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROBES-CUDA_PACKAGE_DEPENDS "assay (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_PROBES-CUDA_DESCRIPTION
"Probes of assay for NVIDIA GPUs
 Measure memory, arithmetic, links and collectives of GPUs. The driver,
 cuBLASLt and NCCL are opened at run time where they are.")
set(CPACK_DEBIAN_MACHINE_PACKAGE_NAME assay-machine-${architecture})
set(CPACK_DEBIAN_MACHINE_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_MACHINE_PACKAGE_DEPENDS "assay (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_MACHINE_DESCRIPTION
"Agent and probes of assay for nodes of ${architecture}
 For a head node of another architecture: what assay sends to the nodes of this
 one. Their programs do not run on the head and need no library there.")

# copyright and changelog of each package, and what lintian is told.
file(READ ${CMAKE_SOURCE_DIR}/packages/changelog.in text)
string(CONFIGURE "${text}" text @ONLY)
foreach(component assay node probes-cuda machine)
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(here ${CMAKE_BINARY_DIR}/packages/${package})
  string(REPLACE "PACKAGE" "${package}" changelog "${text}")
  file(CONFIGURE OUTPUT ${here}/changelog CONTENT "${changelog}" @ONLY)
  execute_process(COMMAND gzip -9nf --keep changelog WORKING_DIRECTORY ${here} COMMAND_ERROR_IS_FATAL ANY)
  if(component STREQUAL machine)
    set(optional EXCLUDE_FROM_ALL)
  else()
    set(optional "")
  endif()
  install(FILES ${here}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component} ${optional})
  install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright COMPONENT ${component} ${optional})
  set(overrides ${CMAKE_SOURCE_DIR}/packages/lintian-${component})
  if(EXISTS ${overrides})
    install(FILES ${overrides} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME ${package} COMPONENT ${component} ${optional})
  endif()
endforeach()
include(CPack)
