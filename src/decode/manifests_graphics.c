/* SPDX-License-Identifier: MIT */
/*
 * Graphics: the events of DxgKrnl, DXGI and Direct3D 9 about presents and the queues of the GPU.
 * Fields that later versions of Windows appended without a new version number are optional.
 */
#include "decode/manifests_lists.h"

static const struct ew_table_map maps[] = {
    {"PresentModel",
     "UNINITIALIZED=0 REDIRECTED_GDI=1 REDIRECTED_FLIP=2 REDIRECTED_BLT=3 REDIRECTED_VISTABLT=4 "
     "SCREENCAPTUREFENCE=5 REDIRECTED_GDI_SYSMEM=6 REDIRECTED_COMPOSITION=7 SURFACECOMPLETE=8 "
     "FLIPMANAGER=9"},
    {"PacketType", "RENDER_COMMAND_BUFFER=0 DEFERRED_COMMAND_BUFFER=1 SYSTEM_COMMAND_BUFFER=2 "
                   "MMIOFLIP_COMMAND_BUFFER=3 WAIT_COMMAND_BUFFER=4 SIGNAL_COMMAND_BUFFER=5 "
                   "DEVICE_COMMAND_BUFFER=6 SOFTWARE_COMMAND_BUFFER=7 PAGING_COMMAND_BUFFER=8"},
    {"FlipEntryStatus", "FlipWaitVSync=5 FlipWaitComplete=11 FlipWaitHSync=15"},
    {NULL, NULL},
};

static const struct ew_table_event dxgkrnl[] = {
    {17, 0, "VSyncDPC",
     "pDxgAdapter:p VidPnTargetId:u4 ScannedPhysicalAddress:x8 VidPnSourceId:u4 FrameNumber:u4 "
     "FrameQPCTime:i8 hFlipDevice:p FlipType:u4 FlipFenceId:u8"},
    {27, 0, "Device/Start",
     "hProcessId:p pDxgAdapter:p ClientType:u4 hDevice:p ?RequestVSync:b ?DisableGpuTimeout:b "
     "?hThunkHandle:x4"},
    {28, 0, "Device/Stop",
     "hProcessId:p pDxgAdapter:p ClientType:u4 hDevice:p ?RequestVSync:b ?DisableGpuTimeout:b "
     "?hThunkHandle:x4"},
    {29, 0, "Device/DCStart",
     "hProcessId:p pDxgAdapter:p ClientType:u4 hDevice:p ?RequestVSync:b ?DisableGpuTimeout:b "
     "?hThunkHandle:x4"},
    {30, 0, "Context/Start",
     "hDevice:p NodeOrdinal:u4 EngineAffinity:u4 DmaBufferSize:u4 DmaBufferSegmentSet:u4 "
     "DmaBufferPrivateDataSize:u4 AllocationListSize:u4 PatchLocationListSize:u4 Flags:x4 "
     "hContext:p ?ContextHandle:p ?ParentDxgContext:p"},
    {31, 0, "Context/Stop",
     "hDevice:p NodeOrdinal:u4 EngineAffinity:u4 DmaBufferSize:u4 DmaBufferSegmentSet:u4 "
     "DmaBufferPrivateDataSize:u4 AllocationListSize:u4 PatchLocationListSize:u4 Flags:x4 "
     "hContext:p ?ContextHandle:p ?ParentDxgContext:p"},
    {32, 0, "Context/DCStart",
     "hDevice:p NodeOrdinal:u4 EngineAffinity:u4 DmaBufferSize:u4 DmaBufferSegmentSet:u4 "
     "DmaBufferPrivateDataSize:u4 AllocationListSize:u4 PatchLocationListSize:u4 Flags:x4 "
     "hContext:p ?ContextHandle:p ?ParentDxgContext:p"},
    {116, 0, "MMIOFlip",
     "pDxgAdapter:p VidPnSourceId:u4 FlipSubmitSequence:u4 FlipToDriverAllocation:p "
     "FlipToPhysicalAddress:x8 FlipToSegmentId:u4 ?FlipPresentId:u4 ?FlipPhysicalAdapterMask:u4 "
     "?Flags:x4"},
    {166, 0, "Blit",
     "hwnd:p pDmaBuffer:p PresentHistoryToken:x8 hSourceAllocation:p hDestAllocation:p bSubmit:b "
     "bRedirectedPresent:b ?Flags:x4 ?Source.Left:i4 ?Source.Right:i4 ?Source.Top:i4 "
     "?Source.Bottom:i4 ?Dest.Left:i4 ?Dest.Right:i4 ?Dest.Top:i4 ?Dest.Bottom:i4 "
     "?SubRectCount:u4"},
    {168, 0, "Flip",
     "pDmaBuffer:p VidPnSourceId:u4 FlipToAllocation:p FlipInterval:u4 FlipWithNoWait:b "
     "MMIOFlip:b"},
    {171, 0, "PresentHistory/Start",
     "hAdapter:p Token:p Model:u4=PresentModel TokenSize:u4 TokenData:x8"},
    {172, 0, "PresentHistory",
     "hAdapter:p Token:p Model:u4=PresentModel TokenSize:u4 TokenData:x8"},
    {175, 1, "DmaPacket/Start",
     "hContext:p hQueuePacketContext:p PacketType:u4=PacketType uliSubmissionId:u8 "
     "ulQueueSubmitSequence:u4 ?pDmaBuffer:p ?QuantumStatus:u4"},
    {176, 0, "DmaPacket/Stop",
     "hContext:p PacketType:u4=PacketType uliCompletionId:u8 ulQueueSubmitSequence:u4 "
     "?bPreempted:b"},
    {177, 0, "DmaPacket",
     "hContext:p PacketType:u4=PacketType uliCompletionId:u8 ulQueueSubmitSequence:u4 "
     "?InterruptType:u4 ?QuantumStatus:u4 ?FaultedVirtualAddress:x8 ?PageFaultFlags:x4 "
     "?FaultedProcessHandle:p"},
    {178, 0, "QueuePacket/Start",
     "hContext:p PacketType:u4=PacketType SubmitSequence:u4 DmaBufferSize:u8 "
     "AllocationListSize:u4 PatchLocationListSize:u4 bPresent:b hDmaBuffer:p ?pQueuePacket:p "
     "?ProgressFenceValue:u8"},
    {180, 0, "QueuePacket/Stop",
     "hContext:p PacketType:u4=PacketType SubmitSequence:u4 bPreempted:b ?bTimeouted:b "
     "?pQueuePacket:p"},
    {184, 0, "Present",
     "hContext:x4 hWindow:p VidPnSourceId:u4 Flags:x4 ReturnStatus:x4 hSrcAllocHandle:p "
     "hDstAllocHandle:p"},
    {215, 0, "PresentHistoryDetailed/Start",
     "hAdapter:p Token:p Model:u4=PresentModel TokenSize:u4 TokenData:x8 ScrollRect.left:u4 "
     "ScrollRect.right:u4 ScrollRect.top:u4 ScrollRect.bottom:u4 ScrollOffset.X:u4 "
     "ScrollOffset.Y:u4 DirtyRectCount:u4 Left:i4[DirtyRectCount] Right:i4[DirtyRectCount] "
     "Top:i4[DirtyRectCount] Bottom:i4[DirtyRectCount] ?SourceRect.left:u4 ?SourceRect.right:u4 "
     "?SourceRect.top:u4 ?SourceRect.bottom:u4 ?DestWidth:u4 ?DestHeight:u4 ?TargetRect.left:u4 "
     "?TargetRect.right:u4 ?TargetRect.top:u4 ?TargetRect.bottom:u4"},
    {244, 0, "QueuePacket/Start",
     "hContext:p SubmitSequence:u4 Flags:x4 hSyncObject:p FenceValue:u8 ?pQueuePacket:p"},
    {245, 0, "QueuePacket/Start",
     "hContext:p SubmitSequence:u4 Flags:x4 ObjectCount:u4 ObjectArray:p[ObjectCount] "
     "FenceValue:u8[ObjectCount] ?pQueuePacket:p"},
    {252, 0, "FlipMultiPlaneOverlay",
     "VidPnSourceId:u4 LayerIndex:u4 Enabled:b hAllocation:p Flags:x4 SrcRect.left:i4 "
     "SrcRect.right:i4 SrcRect.top:i4 SrcRect.bottom:i4 DstRect.left:i4 DstRect.right:i4 "
     "DstRect.top:i4 DstRect.bottom:i4 ClipRect.left:i4 ClipRect.right:i4 ClipRect.top:i4 "
     "ClipRect.bottom:i4 Rotation:u4 Blend:u4 NumFilters:u4 ?ColorSpace:u4 ?HDRMetaDataType:u4 "
     "?SDRWhiteLevel:u4"},
    {259, 0, "MMIOFlipMultiPlaneOverlay",
     "pDxgAdapter:p VidPnSourceId:u4 LayerIndex:u4 FlipSubmitSequence:u8 FlipToDriverAllocation:p "
     "FlipToPhysicalAddress:x8 FlipToSegmentId:u4 FlipPresentId:u4 FlipPhysicalAdapterMask:u4 "
     "SrcRect.left:i4 SrcRect.right:i4 SrcRect.top:i4 SrcRect.bottom:i4 DstRect.left:i4 "
     "DstRect.right:i4 DstRect.top:i4 DstRect.bottom:i4 ClipRect.left:i4 ClipRect.right:i4 "
     "ClipRect.top:i4 ClipRect.bottom:i4 ?ColorSpace:u4 "
     "?FlipEntryStatusAfterFlip:u4=FlipEntryStatus ?Enabled:b ?SDRWhiteLevel:u4 "
     "?DirtyRectCount:u4"},
    {382, 0, "HSyncDPCMultiPlane",
     "pDxgAdapter:p PlaneCount:u4 ScannedPhysicalAddress:x8[PlaneCount] VidPnSourceId:u4 "
     "FrameNumber:u4 FlipEntryCount:u4 FlipSubmitSequence:u8[FlipEntryCount]"},
    {422, 0, "HwQueue/Start", "hContext:p hHwQueue:p ParentDxgHwQueue:p"},
    {424, 0, "HwQueue/DCStart", "hContext:p hHwQueue:p ParentDxgHwQueue:p"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event dxgi[] = {
    {1, 0, "Factory/Start", "pIDXGIFactory:p Mode:u4 BlockedAdapters:u4 PnPID:w DriverVersion:w"},
    {2, 0, "Factory/Stop", "pIDXGIFactory:p Mode:u4 BlockedAdapters:u4 PnPID:w DriverVersion:w"},
    {3, 0, "Factory/DCStart", "pIDXGIFactory:p Mode:u4 BlockedAdapters:u4 PnPID:w DriverVersion:w"},
    {4, 0, "Adapter/Start",
     "pIDXGIAdapter:p pIDXGIFactory:p KMTAdapterHandle:x4 ThunkDLLHandle:p SharedResources:b"},
    {5, 0, "Adapter/Stop",
     "pIDXGIAdapter:p pIDXGIFactory:p KMTAdapterHandle:x4 ThunkDLLHandle:p SharedResources:b"},
    {6, 0, "Adapter/DCStart",
     "pIDXGIAdapter:p pIDXGIFactory:p KMTAdapterHandle:x4 ThunkDLLHandle:p SharedResources:b"},
    {7, 0, "Output/Start", "pIDXGIOutput:p pIDXGIAdapter:p VidPnSourceID:u4 GDIDeviceName:w"},
    {8, 0, "Output/Stop", "pIDXGIOutput:p pIDXGIAdapter:p VidPnSourceID:u4 GDIDeviceName:w"},
    {9, 0, "Output/DCStart", "pIDXGIOutput:p pIDXGIAdapter:p VidPnSourceID:u4 GDIDeviceName:w"},
    {40, 0, "Profile/Start", "Event:u4"},
    {41, 0, "Profile/Stop", "Event:u4"},
    {42, 0, "Present/Start",
     "pIDXGISwapChain:p Flags:x4 SyncInterval:u4 ?DirtyRects:u4 ?ScrollRects:u4"},
    {43, 0, "Present/Stop", "Result:x4"},
    {44, 0, "GetFrameStatistics",
     "ReturnValue:x4 PresentCount:u4 PresentRefreshCount:u4 SyncRefreshCount:u4 SyncQPCTime:u8"},
    {53, 0, "DWMRedirection", "pIDXGISwapChain:p NewRedirected:b"},
    {54, 0, "FlipCPUSyncTimeout",
     "pIDXGISwapChain:p BackBufferNumber:u4 BackBufferHandle:p BackBufferEventHandle:p"},
    {55, 0, "PresentMultiplaneOverlay/Start",
     "pIDXGISwapChain:p Flags:x4 SyncInterval:u4 ?NumPlanes:u4 ?LayerMask:x4"},
    {56, 0, "PresentMultiplaneOverlay/Stop", "Result:x4"},
    {57, 0, "CheckMultiplaneOverlaySupport/Start", "pIDXGISwapChain:p NumPlanes:u4"},
    {58, 0, "CheckMultiplaneOverlaySupport/Stop", "Result:x4"},
    {60, 0, "PresentMultiplaneOverlayChange", "pIDXGISwapChain:p LayerIndex:u4 Enabled:b"},
    {0, 0, NULL, NULL},
};

static const struct ew_table_event d3d9[] = {
    {1, 0, "Present/Start", "pSwapchain:p Flags:x4"},
    {2, 0, "Present/Stop", "Result:x4"},
    {0, 0, NULL, NULL},
};

const struct ew_table_provider ew_table_graphics[] = {
    {.guid = "802ec45a-1e99-4b83-9920-87c98277ba9d",
     .name = "Microsoft-Windows-DxgKrnl",
     .events = dxgkrnl,
     .maps = maps},
    {.guid = "ca11c036-0102-4a2d-a6ad-f03cfed5d3c9",
     .name = "Microsoft-Windows-DXGI",
     .events = dxgi},
    {.guid = "783aca0a-790e-4d7f-8451-aa850511c6b9",
     .name = "Microsoft-Windows-D3D9",
     .events = d3d9},
    {.guid = NULL},
};
