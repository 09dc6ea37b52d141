/* SPDX-License-Identifier: MIT */
/* Layouts of the class SystemConfig: the machine's hardware, recorded at the end of a session. */
#include "decode/kernel_table.h"

#define CPU_HEAD                                                                \
    K(U32, MHz), K(U32, NumberOfProcessors), K(U32, MemSize), K(U32, PageSize), \
        K(U32, AllocationGranularity), K_ARG(CHARS, ComputerName, 256)

static const struct ew_kernel_item cpu_0[] = {CPU_HEAD, K_ARG(CHARS, DomainName, 132),
                                              K(PTR, HyperThreadingFlag)};
static const struct ew_kernel_item cpu_2[] = {CPU_HEAD, K_ARG(CHARS, DomainName, 134),
                                              K(PTR, HyperThreadingFlag)};
static const struct ew_kernel_item cpu_3[] = {CPU_HEAD,
                                              K_ARG(CHARS, DomainName, 134),
                                              K(PTR, HyperThreadingFlag),
                                              K(PTR, HighestUserAddress),
                                              K(U16, ProcessorArchitecture),
                                              K(U16, ProcessorLevel),
                                              K(U16, ProcessorRevision),
                                              K(BOOL, PaeEnabled),
                                              K(BOOL, NxEnabled),
                                              K(U32, MemorySpeed)};
static const struct ew_kernel_item physical_disk[] = {K(U32, DiskNumber),
                                                      K(U32, BytesPerSector),
                                                      K(U32, SectorsPerTrack),
                                                      K(U32, TracksPerCylinder),
                                                      K(U64, Cylinders),
                                                      K(U32, SCSIPort),
                                                      K(U32, SCSIPath),
                                                      K(U32, SCSITarget),
                                                      K(U32, SCSILun),
                                                      K_ARG(CHARS, Manufacturer, 256),
                                                      K(U32, PartitionCount),
                                                      K(U8, WriteCacheEnabled),
                                                      K(U8, Pad),
                                                      K_ARG(CHARS, BootDriveLetter, 3),
                                                      K_ARG(CHARS, Spare, 2)};
static const struct ew_kernel_item logical_disk[] = {K(U64, StartOffset),
                                                     K(U64, PartitionSize),
                                                     K(U32, DiskNumber),
                                                     K(U32, Size),
                                                     K(U32, DriveType),
                                                     K_ARG(CHARS, DriveLetterString, 4),
                                                     K(U32, Pad1),
                                                     K(U32, PartitionNumber),
                                                     K(U32, SectorsPerCluster),
                                                     K(U32, BytesPerSector),
                                                     K(U32, Pad2),
                                                     K(I64, NumberOfFreeClusters),
                                                     K(I64, TotalNumberOfClusters),
                                                     K_ARG(CHARS, FileSystem, 16),
                                                     K(U32, VolumeExt),
                                                     K_ONLY(MAYEND),
                                                     K(U32, Pad3)};
static const struct ew_kernel_item optical_disk[] = {
    K(U16, DiskNumber),          K(U16, BusType),
    K(U16, DeviceType),          K(U16, MediaType),
    K(U64, StartingOffset),      K(U64, Size),
    K(U64, NumberOfFreeBlocks),  K(U64, TotalNumberOfBlocks),
    K(U64, NextWritableAddress), K(U32, NumberOfSessions),
    K(U32, NumberOfTracks),      K(U32, BytesPerSector),
    K(U16, DiscStatus),          K(U16, LastSessionStatus),
    K(WIDE, DriveLetter),        K(WIDE, FileSystemName),
    K(ANSI, DeviceName),         K(ANSI, ManufacturerName)};
static const struct ew_kernel_item nic_0[] = {K_ARG(CHARS, NICName, 256),
                                              K(U32, Index),
                                              K(U32, PhysicalAddrLen),
                                              K_ARG(CHARS, PhysicalAddr, 8),
                                              K(U32, Size),
                                              K(IPV4, IpAddress),
                                              K(IPV4, SubnetMask),
                                              K(IPV4, DhcpServer),
                                              K(IPV4, Gateway),
                                              K(IPV4, PrimaryWinsServer),
                                              K(IPV4, SecondaryWinsServer),
                                              K(IPV4, DnsServer1),
                                              K(IPV4, DnsServer2),
                                              K(IPV4, DnsServer3),
                                              K(IPV4, DnsServer4),
                                              K(U32, Data)};
static const struct ew_kernel_item nic_2[] = {
    K(U64, PhysicalAddr),    K(U32, PhysicalAddrLen), K(U32, Ipv4Index),          K(U32, Ipv6Index),
    K(WIDE, NICDescription), K(WIDE, IpAddresses),    K(WIDE, DnsServerAddresses)};
static const struct ew_kernel_item video[] = {K(U32, MemorySize),
                                              K(U32, XResolution),
                                              K(U32, YResolution),
                                              K(U32, BitsPerPixel),
                                              K(U32, VRefresh),
                                              K_ARG(CHARS, ChipType, 256),
                                              K_ARG(CHARS, DACType, 256),
                                              K_ARG(CHARS, AdapterString, 256),
                                              K_ARG(CHARS, BiosString, 256),
                                              K_ARG(CHARS, DeviceId, 256),
                                              K(X32, StateFlags)};
static const struct ew_kernel_item services_0[] = {
    K_ARG(CHARS, ServiceName, 34), K_ARG(CHARS, DisplayName, 256), K_ARG(CHARS, ProcessName, 34),
    K(U32, ProcessId)};
static const struct ew_kernel_item services_2[] = {K(U32, ProcessId),     K(U32, ServiceState),
                                                   K(U32, SubProcessTag), K(WIDE, ServiceName),
                                                   K(WIDE, DisplayName),  K(WIDE, ProcessName)};
static const struct ew_kernel_item services_3[] = {
    K(U32, ProcessId),    K(U32, ServiceState), K(U32, SubProcessTag),   K(WIDE, ServiceName),
    K(WIDE, DisplayName), K(WIDE, ProcessName), K(WIDE, LoadOrderGroup), K(WIDE, SvchostGroup)};
static const struct ew_kernel_item power[] = {K(U8, S1), K(U8, S2),   K(U8, S3),   K(U8, S4),
                                              K(U8, S5), K(U8, Pad1), K(U8, Pad2), K(U8, Pad3)};
static const struct ew_kernel_item network[] = {K(U32, TcbTablePartitions),
                                                K(U32, MaxHashTableSize), K(U32, MaxUserPort),
                                                K(U32, TcpTimedWaitDelay)};
static const struct ew_kernel_item irq_0[] = {
    K(X64, IRQAffinity), K(U32, IRQNum), K(U32, DeviceDescriptionLen), K(WIDE, DeviceDescription)};
static const struct ew_kernel_item irq_3[] = {
    K(X64, IRQAffinity),          K(U16, IRQGroup),          K(U16, Reserved), K(U32, IRQNum),
    K(U32, DeviceDescriptionLen), K(WIDE, DeviceDescription)};

#define PNP_TEXT K(WIDE, DeviceID), K(WIDE, DeviceDescription), K(WIDE, FriendlyName)
#define PNP_LENGTHS K(U32, IDLength), K(U32, DescriptionLength), K(U32, FriendlyNameLength)
#define PNP_CLASS \
    K(GUID, ClassGuid), K_ARG(U32, UpperFiltersCount, 1), K_ARG(U32, LowerFiltersCount, 2)
#define PNP_FILTERS                                                          \
    K(WIDE, PdoName), K(WIDE, ServiceName), K_TWO(LIST, UpperFilters, 1, 1), \
        K(WIDE, UpperFilters), K_TWO(LIST, LowerFilters, 1, 2), K(WIDE, LowerFilters)

static const struct ew_kernel_item pnp_0[] = {PNP_LENGTHS, PNP_TEXT};
static const struct ew_kernel_item pnp_3[] = {PNP_LENGTHS, PNP_TEXT, K(WIDE, PdoName)};
static const struct ew_kernel_item pnp_4[] = {PNP_CLASS, PNP_TEXT, PNP_FILTERS};
static const struct ew_kernel_item pnp_5[] = {PNP_CLASS, K(X32, DevStatus), K(X32, DevProblem),
                                              PNP_TEXT, PNP_FILTERS};
static const struct ew_kernel_item ide_channel[] = {
    K(U32, TargetId), K(U32, DeviceType), K(U32, DeviceTimingMode), K(U32, LocationInformationLen),
    K(WIDE, LocationInformation)};
static const struct ew_kernel_item numa_node[] = {K_ARG(U32, NodeCount, 1),
                                                  K_TWO(LIST, NodeMap, 1, 1), K(X64, NodeMap)};
static const struct ew_kernel_item platform[] = {K(WIDE, SystemManufacturer),
                                                 K(WIDE, SystemProductName), K(WIDE, BiosDate),
                                                 K(WIDE, BiosVersion)};
static const struct ew_kernel_item processor_group[] = {
    K_ARG(U32, GroupCount, 1), K_TWO(LIST, Affinity, 1, 1), K(PTR, Affinity)};
static const struct ew_kernel_item processor_number[] = {
    K_ARG(U32, ProcessorCount, 1), K_TWO(LIST, ProcessorNumber, 1, 1), K(X32, ProcessorNumber)};
static const struct ew_kernel_item dpi[] = {K(U32, MachineDPI), K(U32, UserDPI)};
static const struct ew_kernel_item code_integrity[] = {K(X32, CodeIntegrityInfo)};
static const struct ew_kernel_item telemetry[] = {K(GUID, MachineId)};
static const struct ew_kernel_item defragmentation[] = {
    K(U64, AlignmentClusters),
    K(U64, AvgFreeSpaceSize),
    K(U64, ClustersPerSlab),
    K(U64, FragmentedDirectoryExtents),
    K(U64, FragmentedExtents),
    K(U64, FreeSpaceCount),
    K(U64, LargestFreeSpaceSize),
    K(U64, LastRunActualPurgeClusters),
    K(U64, LastRunClustersTrimmed),
    K(U64, LastRunFullDefragTime),
    K(U64, LastRunTime),
    K(U64, MFTSize),
    K(U64, TotalClusters),
    K(U64, TotalUsedClusters),
    K(U32, AvgFragmentsPerFile),
    K(U32, BytesPerCluster),
    K(U32, DirectoryCount),
    K(U32, FragmentedDirectories),
    K(U32, FragmentedFiles),
    K(U32, FragmentedSpace),
    K(U32, HardwareIssue),
    K(U32, InUseMFTRecords),
    K(U32, InUseSlabs),
    K(U32, LastRunActualPurgeSlabs),
    K(U32, LastRunInitialBackedSlabs),
    K(U32, LastRunPercentFragmentation),
    K(U32, LastRunPinnedSlabs),
    K(U32, LastRunPotentialPurgeSlabs),
    K(U32, LastRunSpaceInefficientSlabs),
    K(U32, LastRunTrimmedSlabs),
    K(U32, LastRunUnknownEvictFailSlabs),
    K(U32, LastRunVolsnapPinnedSlabs),
    K(U32, MFTFragmentCount),
    K(U32, MovableFiles),
    K(U32, TotalMFTRecords),
    K(U32, TotalSlabs),
    K(U32, UnmovableFiles),
    K(GUID, VolumeId),
    K(WIDE, VolumePathNames),
};
static const struct ew_kernel_item mobile_platform[] = {
    K(WIDE, BootLoaderVersion),
    K(WIDE, FirmwareRevision),
    K(WIDE, FriendlyName),
    K(WIDE, HardwareRevision),
    K(WIDE, Manufacturer),
    K(WIDE, ManufacturerDisplayName),
    K(WIDE, ManufacturerModelName),
    K(WIDE, MobileOperatorDisplayName),
    K(WIDE, MobileOperatorName),
    K(WIDE, ModelName),
    K(WIDE, RadioHardwareRevision),
    K(WIDE, RadioSoftwareRevision),
    K(WIDE, ROMVersion),
    K(WIDE, SOCVersion),
    K(WIDE, HardwareVariant),
};
static const struct ew_kernel_item device_family[] = {K(X64, UAPInfo), K(U32, DeviceFamily),
                                                      K(U32, DeviceForm)};
static const struct ew_kernel_item flight_ids[] = {K(WIDE, UpdateId), K(WIDE, FlightIdList)};
static const struct ew_kernel_item processors[] = {K(U32, ProcessorIndex),
                                                   K(X32, FeatureSet),
                                                   K(U32, ProcessorSpeed),
                                                   K_ARG(CHARS, ProcessorName, 64),
                                                   K_ARG(CHARS, VendorIdentifier, 16),
                                                   K_ARG(CHARS, ProcessorIdentifier, 128)};

static const struct ew_kernel_event config_events[] = {
    ROW(10, 0, "SystemConfig/CPU", cpu_0),
    ROW(10, 2, "SystemConfig/CPU", cpu_2),
    ROW(10, 3, "SystemConfig/CPU", cpu_3),
    ROW(11, 0, "SystemConfig/PhyDisk", physical_disk),
    ROW(12, 0, "SystemConfig/LogDisk", logical_disk),
    ROW(13, 0, "SystemConfig/NIC", nic_0),
    ROW(13, 2, "SystemConfig/NIC", nic_2),
    ROW(14, 0, "SystemConfig/Video", video),
    ROW(15, 0, "SystemConfig/Services", services_0),
    ROW(15, 2, "SystemConfig/Services", services_2),
    ROW(15, 3, "SystemConfig/Services", services_3),
    ROW(16, 0, "SystemConfig/Power", power),
    ROW(17, 0, "SystemConfig/Network", network),
    ROW(18, 0, "SystemConfig/OpticalDisk", optical_disk),
    ROW(21, 0, "SystemConfig/IRQ", irq_0),
    ROW(21, 3, "SystemConfig/IRQ", irq_3),
    ROW(22, 0, "SystemConfig/PnP", pnp_0),
    ROW(22, 3, "SystemConfig/PnP", pnp_3),
    ROW(22, 4, "SystemConfig/PnP", pnp_4),
    ROW(22, 5, "SystemConfig/PnP", pnp_5),
    ROW(23, 0, "SystemConfig/IDEChannel", ide_channel),
    ROW(24, 0, "SystemConfig/NumaNode", numa_node),
    ROW(25, 0, "SystemConfig/Platform", platform),
    ROW(26, 0, "SystemConfig/ProcessorGroup", processor_group),
    ROW(27, 0, "SystemConfig/ProcessorNumber", processor_number),
    ROW(28, 0, "SystemConfig/DPI", dpi),
    ROW(29, 0, "SystemConfig/CodeIntegrity", code_integrity),
    ROW(30, 0, "SystemConfig/TelemetryConfiguration", telemetry),
    ROW(31, 0, "SystemConfig/Defragmentation", defragmentation),
    ROW(32, 0, "SystemConfig/MobilePlatform", mobile_platform),
    ROW(33, 0, "SystemConfig/DeviceFamily", device_family),
    ROW(34, 0, "SystemConfig/FlightIds", flight_ids),
    ROW(35, 0, "SystemConfig/Processors", processors),
    ROW_NAME(36, "SystemConfig/Virtualization"),
    ROW_NAME(37, "SystemConfig/Boot"),
};
const struct ew_kernel_class ew_kernel_systemconfig =
    EW_KERNEL_CLASS("SystemConfig", "Windows Kernel", config_events);
