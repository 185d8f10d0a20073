# What a plugin is to CMake, in assay's own tree and after find_package(assay).
set(ASSAY_PLUGIN_EXPORTS ${CMAKE_CURRENT_LIST_DIR}/plugin_exports.map)

# assay_plugin_target(NAME SOURCES... [DEPS...]): module NAME.so that exports assay_plugin_query alone.
function(assay_plugin_target name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT name MATCHES "^(engine|backend|comparator|launcher)_[A-Za-z0-9_.-]+$")
    message(FATAL_ERROR "assay_plugin(${name}): expected <kind>_<name> with kind engine, backend, comparator or launcher")
  endif()
  add_library(${name} MODULE ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE assay::abi ${ARG_DEPS})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_options(${name} PRIVATE -Wl,--version-script=${ASSAY_PLUGIN_EXPORTS})
  if(NOT ASSAY_SANITIZE AND NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize=")
    target_link_options(${name} PRIVATE -Wl,-z,defs)  # a missing symbol is an error now, not when it is loaded
  endif()
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" LINK_DEPENDS ${ASSAY_PLUGIN_EXPORTS}
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# assay_plugin_test(PLUGIN SOURCES...): CTest tests PLUGIN.unit, a program that ends with 0 (the plugin's own sources among
# SOURCES), and PLUGIN.conformance, `assay plugin test` on the shared object.
function(assay_plugin_test plugin)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  if(DEFINED ASSAY_TESTS AND NOT ASSAY_TESTS)
    return()
  endif()
  add_executable(${plugin}_test ${ARG_SOURCES})
  target_link_libraries(${plugin}_test PRIVATE assay::abi)
  target_compile_features(${plugin}_test PRIVATE cxx_std_20)
  add_test(NAME ${plugin}.unit COMMAND ${plugin}_test)
  add_test(NAME ${plugin}.conformance COMMAND $<TARGET_FILE:assay::assay> plugin test $<TARGET_FILE:${plugin}>)
  set_target_properties(${plugin}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(${plugin}.unit ${plugin}.conformance PROPERTIES TIMEOUT 900)
endfunction()
