/* The catalogue of Xid codes: what each one means and what to do first. Names are those of the
 * driver (nverror.h of the open modules, 595.45.04) without their prefixes; meanings and actions
 * follow NVIDIA's public Xid catalogue (docs.nvidia.com/deploy/xid-errors, Ampere and newer) in
 * our words. docs/xid.md shows the same table, and a test holds it to this one. */
#include "xid_table.h"

#define DO_APP N_("Restart the application; if it comes again, look for the fault in its kernels.")
#define DO_RESTART N_("Restart the application.")
#define DO_NONE N_("Nothing by itself.")
#define DO_RESET N_("Stop the jobs on that GPU and reset it, or restart the machine.")
#define DO_REBOOT N_("Restart the machine.")
#define DO_PREV N_("Look at the Xid before it: this one only cleans up.")
#define DO_POWER N_("Check the auxiliary power cables and that the card sits firmly.")
#define DO_VERS N_("Bring host, guest and firmware to versions that belong together.")
#define DO_REMAP                                                                                   \
    N_("Look at the row remaps (nvidia-smi -q -d ROW_REMAPPER); reset the GPU when idle.")
#define DO_LINK                                                                                    \
    N_("Find the link's other end and look at both; count its errors with nvidia-smi nvlink -e.")
#define DO_UVM N_("Check the application's use of managed memory.")
#define DO_VM N_("Restart the virtual machine.")
#define DO_FOLLOW N_("Do what the message names.")
#define DO_HEAT N_("Check cooling and power.")
#define DO_DISPLAY N_("A display's matter; compute is not touched.")
#define THEN_SUPPORT N_("If it comes again: nvidia-bug-report.sh and the vendor's support.")
#define THEN_DIAG N_("If it comes again on the same GPU: dcgmi diag -r 3.")
#define THEN_RMA N_("If it comes again after a reset: have the card replaced.")
#define THEN_DRIVER N_("If it comes again: try another driver version.")

const tv_xid_row tv_xid_rows[] = {
    {8, 8, "FIFO_ERROR_IDLE_TIMEOUT", N_("the GPU stopped working through its queue"), DO_RESTART,
     THEN_SUPPORT, TV_XID_DRIVER, NULL},
    {11, 11, "MISSING_HW", N_("a push buffer held a command that is not valid or was damaged"),
     DO_APP, THEN_DRIVER, TV_XID_APPLICATION, NULL},
    {13, 13, "GR_EXCEPTION", N_("a kernel faulted on a multiprocessor"), DO_APP, THEN_DIAG,
     TV_XID_APPLICATION, "H30"},
    {25, 25, "GR_ILLEGAL_NOTIFY",
     N_("a push buffer held a command that is not valid or was damaged"), DO_APP, THEN_DRIVER,
     TV_XID_APPLICATION, NULL},
    {31, 31, "MMU_ERR_FLT", N_("a kernel or a copy touched an address that is not mapped"), DO_APP,
     THEN_DIAG, TV_XID_APPLICATION, "H30"},
    {32, 32, "PBDMA_ERROR", N_("a push buffer held a command that is not valid or was damaged"),
     DO_APP, THEN_SUPPORT, TV_XID_DRIVER, NULL},
    {37, 37, "FECS_ERR_UNIMP_FIRMWARE_METHOD",
     N_("the context-switch firmware met a method that it does not know"), DO_NONE, THEN_SUPPORT,
     TV_XID_DRIVER, NULL},
    {38, 38, "FECS_ERR_WATCHDOG_TIMEOUT", N_("the context-switch firmware did not answer in time"),
     DO_RESTART, THEN_DRIVER, TV_XID_DRIVER, NULL},
    {39, 41, "CE0_ERROR to CE2_ERROR", N_("a copy engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {42, 42, "VIC_ERROR", N_("the video image compositor faulted"), DO_NONE, THEN_DRIVER,
     TV_XID_INFO, "X42"},
    {43, 43, "RESETCHANNEL_VERIF_ERROR",
     N_("the driver reset the channel of a program that had faulted"), DO_PREV, THEN_SUPPORT,
     TV_XID_APPLICATION, "H30"},
    {44, 44, "GR_FAULT_DURING_CTXSW", N_("a fault while contexts were switched"), DO_NONE,
     THEN_SUPPORT, TV_XID_DRIVER, NULL},
    {45, 45, "PREEMPTIVE_REMOVAL",
     N_("the driver removed a program's channels, after another error or when it was killed"),
     DO_PREV, THEN_SUPPORT, TV_XID_APPLICATION, "H30"},
    {46, 46, "GPU_TIMEOUT_ERROR", N_("the GPU stopped"), DO_RESET, THEN_SUPPORT, TV_XID_HARDWARE,
     NULL},
    {47, 47, "NVENC0_ERROR", N_("a video encoder faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {48, 48, "GPU_ECC_DBE", N_("an uncorrectable ECC error in the GPU's memory"), DO_REMAP,
     THEN_RMA, TV_XID_HARDWARE, "H15"},
    {52, 53, "THERMAL_EVENT", N_("a power-state event for heat"), DO_HEAT, THEN_SUPPORT,
     TV_XID_HARDWARE, NULL},
    {54, 54, "AUX_POWER", N_("an auxiliary power cable is missing or loose"), DO_POWER,
     THEN_SUPPORT, TV_XID_HARDWARE, "H24"},
    {55, 55, "THERMAL_EVENT", N_("a power-state event for heat"), DO_HEAT, THEN_SUPPORT,
     TV_XID_HARDWARE, NULL},
    {56, 56, "DISPLAY_ENGINE", N_("the display engine faulted"), DO_DISPLAY, THEN_DRIVER,
     TV_XID_INFO, NULL},
    {57, 58, "FB_INTERFACE", N_("the memory interface reported an error"), DO_RESET, THEN_RMA,
     TV_XID_HARDWARE, NULL},
    {59, 59, "PMU_ERROR", N_("the internal power controller reported an error"), DO_RESET,
     THEN_SUPPORT, TV_XID_DRIVER, NULL},
    {60, 60, "SEC2_ERROR", N_("a video or security engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {61, 61, "PMU_BREAKPOINT", N_("the internal controller stopped at a breakpoint (old drivers)"),
     DO_RESET, THEN_RMA, TV_XID_HARDWARE, "H22"},
    {62, 62, "PMU_HALT_ERROR", N_("the internal controller halted"), DO_RESET, THEN_RMA,
     TV_XID_HARDWARE, "H22"},
    {63, 63, "DRAM_RETIREMENT_EVENT", N_("a memory row or page is marked to be replaced"), DO_REMAP,
     NULL, TV_XID_HARDWARE, "H16"},
    {64, 64, "DRAM_RETIREMENT_FAILURE", N_("a memory row or page could not be replaced"), DO_RESET,
     THEN_RMA, TV_XID_HARDWARE, "H17"},
    {65, 65, "NVENC1_ERROR", N_("a video encoder faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {66, 66, "FECS_ERR_REG_ACCESS_VIOLATION",
     N_("the context-switch firmware was refused an access"), DO_NONE, THEN_DRIVER, TV_XID_DRIVER,
     NULL},
    {67, 67, "FECS_ERR_VERIF_VIOLATION", N_("the context-switch firmware was refused an access"),
     DO_NONE, THEN_DRIVER, TV_XID_DRIVER, NULL},
    {68, 68, "NVDEC0_ERROR", N_("a video decoder faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {69, 69, "GR_CLASS_ERROR",
     N_("the graphics engine was given a method or data that it does not take"), DO_APP,
     THEN_DRIVER, TV_XID_APPLICATION, NULL},
    {70, 72, "CE3_ERROR to CE5_ERROR", N_("a copy engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {73, 73, "NVENC2_ERROR", N_("a video encoder faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {74, 74, "NVLINK_ERROR", N_("an NVLink reported an error"), DO_LINK, THEN_RMA, TV_XID_NVLINK,
     "H21"},
    {75, 77, "CE6_ERROR to CE8_ERROR", N_("a copy engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {78, 78, "VGPU_START_ERROR", N_("a virtual GPU could not be started: versions do not match"),
     DO_VERS, THEN_SUPPORT, TV_XID_DRIVER, NULL},
    {79, 79, "GPU_HAS_FALLEN_OFF_THE_BUS", N_("the GPU no longer answers on PCI Express"),
     DO_REBOOT, THEN_RMA, TV_XID_HARDWARE, "H13"},
    {80, 80, "PBDMA_PUSHBUFFER_CRC_MISMATCH", N_("a push buffer arrived damaged"), DO_RESTART,
     THEN_SUPPORT, TV_XID_HARDWARE, NULL},
    {81, 81, "VGA_SUBSYSTEM_ERROR", N_("the VGA part faulted"), DO_DISPLAY, THEN_SUPPORT,
     TV_XID_INFO, NULL},
    {82, 82, "NVJPG0_ERROR", N_("a JPEG engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {83, 84, "NVDEC1_ERROR, NVDEC2_ERROR", N_("a video decoder faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {85, 85, "CE9_ERROR", N_("a copy engine faulted"), DO_RESTART, THEN_SUPPORT, TV_XID_APPLICATION,
     NULL},
    {86, 86, "OFA0_ERROR", N_("the optical-flow engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {87, 87, "NVTELEMETRY_DRIVER_REPORT", N_("the driver's own report"), DO_NONE, NULL, TV_XID_INFO,
     NULL},
    {88, 89, "NVDEC3_ERROR, NVDEC4_ERROR", N_("a video decoder faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {90, 90, "LTC_ERROR", N_("the second-level cache reported an error"), DO_RESET, THEN_RMA,
     TV_XID_HARDWARE, NULL},
    {92, 92, "EXCESSIVE_SBE_INTERRUPTS", N_("many corrected memory errors in a short time"),
     DO_NONE, THEN_SUPPORT, TV_XID_HARDWARE, "H20"},
    {93, 93, "INFOROM_ERASE_LIMIT_EXCEEDED", N_("the card's own record store is worn"), DO_NONE,
     THEN_SUPPORT, TV_XID_INFO, NULL},
    {94, 94, "CONTAINED_ERROR",
     N_("an uncorrectable memory error that ended only the program that met it"), DO_RESTART,
     THEN_RMA, TV_XID_HARDWARE, NULL},
    {95, 95, "UNCONTAINED_ERROR",
     N_("an uncorrectable memory error that reached every program on the GPU"), DO_RESET, THEN_RMA,
     TV_XID_HARDWARE, "H15"},
    {96, 98, "NVDEC5_ERROR to NVDEC7_ERROR", N_("a video decoder faulted"), DO_RESTART,
     THEN_SUPPORT, TV_XID_APPLICATION, NULL},
    {99, 105, "NVJPG1_ERROR to NVJPG7_ERROR", N_("a JPEG engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {106, 107, "SMBPBI_TEST_MESSAGE", N_("a test message of the management bus"), DO_NONE, NULL,
     TV_XID_INFO, NULL},
    {108, 108, "NVLINK_REMOTE_TRANSLATION_ERROR",
     N_("an address that came over NVLink could not be translated"), DO_LINK, THEN_SUPPORT,
     TV_XID_NVLINK, NULL},
    {109, 109, "CTXSW_TIMEOUT_ERROR", N_("the GPU did not switch contexts in time"), DO_RESET,
     THEN_SUPPORT, TV_XID_DRIVER, "H31"},
    {110, 110, "SEC_FAULT_ERROR", N_("the security unit refused an access"), DO_RESET, THEN_DRIVER,
     TV_XID_DRIVER, NULL},
    {119, 119, "GSP_RPC_TIMEOUT", N_("the GPU's system processor (GSP) did not answer the driver"),
     DO_RESET, THEN_DRIVER, TV_XID_DRIVER, "H23"},
    {120, 120, "GSP_ERROR", N_("the GPU's system processor (GSP) reported an error"), DO_RESET,
     THEN_DRIVER, TV_XID_DRIVER, "H23"},
    {121, 121, "C2C_ERROR", N_("the link between CPU and GPU reported an error"), DO_NONE,
     THEN_SUPPORT, TV_XID_NVLINK, NULL},
    {122, 124, "SPI_PMU_RPC_FAIL", N_("the card's flash memory could not be read or written"),
     DO_RESET, THEN_SUPPORT, TV_XID_DRIVER, NULL},
    {125, 125, "INFOROM_FS_ERROR", N_("the card's own record store is damaged"), DO_NONE,
     THEN_SUPPORT, TV_XID_HARDWARE, NULL},
    {126, 135, "CE10_ERROR to CE19_ERROR", N_("a copy engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {136, 136, "ALI_TRAINING_FAIL", N_("an NVLink did not come up"), DO_RESET, THEN_RMA,
     TV_XID_NVLINK, NULL},
    {137, 137, "NVLINK_PRIV_ERR",
     N_("a program reached over NVLink for memory that it may not touch"), DO_APP, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {139, 139, "OFA1_ERROR", N_("the optical-flow engine faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {140, 140, "ECC_UNRECOVERED_ERROR",
     N_("an uncorrectable memory error that was not recovered from"), DO_RESET, THEN_RMA,
     TV_XID_HARDWARE, "H15"},
    {141, 141, "FAST_PATH_ERROR", N_("CUDA's fast path reported an error"), DO_NONE, THEN_SUPPORT,
     TV_XID_DRIVER, NULL},
    {142, 142, "NVENC3_ERROR", N_("a video encoder faulted"), DO_RESTART, THEN_SUPPORT,
     TV_XID_APPLICATION, NULL},
    {143, 143, "GPU_INIT_ERROR", N_("the GPU could not be initialised"), DO_RESET, THEN_RMA,
     TV_XID_HARDWARE, NULL},
    {144, 144, "NVLINK_SAW_ERROR", N_("an NVLink unit reported an error (fifth generation)"),
     DO_LINK, THEN_SUPPORT, TV_XID_NVLINK, "H21"},
    {145, 145, "NVLINK_RLW_ERROR", N_("an NVLink unit reported an error (fifth generation)"),
     DO_LINK, THEN_SUPPORT, TV_XID_NVLINK, "H21"},
    {146, 146, "NVLINK_TLW_ERROR", N_("an NVLink unit reported an error (fifth generation)"),
     DO_LINK, THEN_SUPPORT, TV_XID_NVLINK, "H21"},
    {147, 147, "NVLINK_TREX_ERROR", N_("an NVLink unit reported an error (fifth generation)"),
     DO_LINK, THEN_SUPPORT, TV_XID_NVLINK, "H21"},
    {148, 148, "NVLINK_NVLPW_CTRL_ERROR", N_("an NVLink unit reported an error (fifth generation)"),
     DO_LINK, THEN_SUPPORT, TV_XID_NVLINK, "H21"},
    {149, 149, "NVLINK_NETIR_ERROR", N_("an NVLink unit reported an error (fifth generation)"),
     DO_LINK, THEN_SUPPORT, TV_XID_NVLINK, "H21"},
    {150, 150, "NVLINK_MSE_ERROR", N_("an NVLink unit reported an error (fifth generation)"),
     DO_LINK, THEN_SUPPORT, TV_XID_NVLINK, "H21"},
    {151, 151, "KEY_ROTATION_ERROR", N_("a key of confidential computing could not be changed"),
     DO_VM, THEN_SUPPORT, TV_XID_DRIVER, NULL},
    {152, 153, "DLA_ERROR", N_("the deep-learning accelerator reported an error"), DO_NONE,
     THEN_SUPPORT, TV_XID_INFO, NULL},
    {154, 154, "GPU_RECOVERY_ACTION_CHANGED",
     N_("the driver names what the GPU needs to work again"), DO_FOLLOW, NULL, TV_XID_INFO, "H32"},
    {155, 155, "NVLINK_SW_DEFINED_ERROR", N_("a link was taken down by software"), DO_RESET,
     THEN_SUPPORT, TV_XID_NVLINK, NULL},
    {156, 156, "RESOURCE_RETIREMENT_EVENT",
     N_("a part of the GPU is marked to be taken out of use"), DO_RESET, NULL, TV_XID_HARDWARE,
     NULL},
    {157, 157, "RESOURCE_RETIREMENT_FAILURE", N_("a part of the GPU could not be taken out of use"),
     DO_NONE, THEN_RMA, TV_XID_HARDWARE, NULL},
    {158, 158, "GPU_FATAL_TIMEOUT", N_("the GPU stopped"), DO_RESET, THEN_SUPPORT, TV_XID_HARDWARE,
     NULL},
    {159, 159, "CHI_NON_DATA_ERROR",
     N_("the CPU answered a request of the GPU with an error (Grace)"), DO_UVM, THEN_SUPPORT,
     TV_XID_DRIVER, NULL},
    {160, 160, "CHANNEL_RETIREMENT_EVENT",
     N_("a memory channel is marked to be replaced by its spare"), DO_NONE, THEN_SUPPORT,
     TV_XID_HARDWARE, NULL},
    {161, 161, "CHANNEL_RETIREMENT_FAILURE",
     N_("a memory channel could not be replaced by its spare"), DO_NONE, THEN_RMA, TV_XID_HARDWARE,
     NULL},
    {162, 165, "POWER_SMOOTHING",
     N_("the power smoothing hardware changed its state or is near the end of its life"), DO_NONE,
     NULL, TV_XID_INFO, NULL},
    {166, 166, "NVLINK_SECURE_CRYPTO_ERR",
     N_("a link carried traffic before its encryption was ready"), DO_VM, THEN_SUPPORT,
     TV_XID_NVLINK, NULL},
    {167, 167, "PCIE_FATAL_TIMEOUT", N_("a request over PCI Express was never answered"), DO_REBOOT,
     THEN_SUPPORT, TV_XID_HARDWARE, NULL},
    {168, 168, "REDUCED_GPU_MEMORY_CAPACITY",
     N_("errors in a protected region make the usable memory smaller"), DO_REBOOT, THEN_RMA,
     TV_XID_HARDWARE, NULL},
    {169, 169, "SEC2_HALT_ERROR", N_("the security processor halted"), DO_RESET, THEN_RMA,
     TV_XID_HARDWARE, NULL},
    {170, 170, "NVLINK_SECURE_OTHER", N_("an interrupt of a link in confidential-computing mode"),
     DO_VM, THEN_SUPPORT, TV_XID_NVLINK, NULL},
    {171, 171, "UNCORRECTABLE_DRAM_ERROR", N_("the uncorrectable error of Xid 48 lies in DRAM"),
     DO_REMAP, THEN_RMA, TV_XID_HARDWARE, "H15"},
    {172, 172, "UNCORRECTABLE_SRAM_ERROR", N_("the uncorrectable error of Xid 48 lies in SRAM"),
     DO_RESET, THEN_RMA, TV_XID_HARDWARE, "H15"},
    {173, 173, "C2C_FATAL_LINK_FAILURE", N_("the link between CPU and GPU failed"), DO_REBOOT,
     THEN_SUPPORT, TV_XID_NVLINK, NULL},
    {175, 175, "MEMORY_SUBSYSTEM_ERROR", N_("the memory system reported an error"), DO_RESET,
     THEN_SUPPORT, TV_XID_HARDWARE, NULL},
    {176, 176, "PCIE_CORRECTABLE_ERROR_FAULT",
     N_("PCI Express corrects errors more often than it should"), DO_HEAT, THEN_SUPPORT,
     TV_XID_HARDWARE, NULL},
};

const size_t tv_xid_n = sizeof tv_xid_rows / sizeof *tv_xid_rows;

const tv_xid_row *tv_xid_named(unsigned code)
{
    for (size_t i = 0; i < tv_xid_n; i++)
        if (code >= tv_xid_rows[i].first && code <= tv_xid_rows[i].last)
            return &tv_xid_rows[i];
    return NULL;
}

const char *tv_xid_class_name(tv_xid_class kind)
{
    switch (kind) {
    case TV_XID_APPLICATION:
        return N_("application");
    case TV_XID_HARDWARE:
        return N_("hardware");
    case TV_XID_DRIVER:
        return N_("driver");
    case TV_XID_NVLINK:
        return N_("NVLink");
    case TV_XID_INFO:
        return N_("information");
    }
    return NULL;
}
