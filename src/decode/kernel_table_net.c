/* SPDX-License-Identifier: MIT */
/* Layouts of the classes TcpIp and UdpIp. */
#include "decode/kernel_table.h"

#define NET_4 \
    K(U32, PID), K(U32, size), K(IPV4, daddr), K(IPV4, saddr), K(PORT, dport), K(PORT, sport)
#define NET_6 \
    K(U32, PID), K(U32, size), K(IPV6, daddr), K(IPV6, saddr), K(PORT, dport), K(PORT, sport)
/* The class descriptions have four bytes for the connection, but the kernel writes a pointer. */
#define NET_SEQUENCE K(U32, seqnum), K(CONN, connid)
#define NET_TIMES K(U32, startime), K(U32, endtime)
#define NET_OPTIONS                                                             \
    K(U16, mss), K(U16, sackopt), K(U16, tsopt), K(U16, wsopt), K(U32, rcvwin), \
        K(I16, rcvwinscale), K(I16, sndwinscale)

static const struct ew_kernel_item tcp_0[] = {K(IPV4, daddr), K(IPV4, saddr), K(PORT, dport),
                                              K(PORT, sport), K(U32, size),   K(U32, PID)};
static const struct ew_kernel_item tcp_1[] = {NET_4, K(U32, connid), K(U32, seqnum)};
static const struct ew_kernel_item tcp_send_1[] = {NET_4, NET_TIMES, K(U32, connid),
                                                   K(U32, seqnum)};
static const struct ew_kernel_item tcp_connect_1[] = {NET_4, NET_OPTIONS, K(U32, connid),
                                                      K(U32, seqnum)};
static const struct ew_kernel_item net_2[] = {NET_4, NET_SEQUENCE};
static const struct ew_kernel_item net6_2[] = {NET_6, NET_SEQUENCE};
static const struct ew_kernel_item tcp_send_2[] = {NET_4, NET_TIMES, NET_SEQUENCE};
static const struct ew_kernel_item tcp6_send_2[] = {NET_6, NET_TIMES, NET_SEQUENCE};
static const struct ew_kernel_item tcp_connect_2[] = {NET_4, NET_OPTIONS, NET_SEQUENCE};
static const struct ew_kernel_item tcp6_connect_2[] = {NET_6, NET_OPTIONS, NET_SEQUENCE};
static const struct ew_kernel_item tcp_fail_1[] = {K(U32, Proto)};
static const struct ew_kernel_item net_fail_2[] = {K(U16, Proto), K(U16, FailureCode)};
static const struct ew_kernel_item udp_0[] = {K(PTR, context), K(IPV4, saddr), K(PORT, sport),
                                              K(U16, size),    K(IPV4, daddr), K(PORT, dport),
                                              K(U16, dsize)};
static const struct ew_kernel_item udp_1[] = {NET_4};

#define TCP_ROWS(opcode, name, from_1, from_2) \
    ROW(opcode, 0, name, tcp_0), ROW(opcode, 1, name, from_1), ROW(opcode, 2, name, from_2)

static const struct ew_kernel_event tcp_events[] = {
    TCP_ROWS(10, "TcpIp/Send", tcp_send_1, tcp_send_2),
    TCP_ROWS(11, "TcpIp/Recv", tcp_1, net_2),
    TCP_ROWS(12, "TcpIp/Connect", tcp_connect_1, tcp_connect_2),
    TCP_ROWS(13, "TcpIp/Disconnect", tcp_1, net_2),
    TCP_ROWS(14, "TcpIp/Retransmit", tcp_1, net_2),
    TCP_ROWS(15, "TcpIp/Accept", tcp_connect_1, tcp_connect_2),
    TCP_ROWS(16, "TcpIp/Reconnect", tcp_1, net_2),
    ROW(17, 0, "TcpIp/Fail", tcp_fail_1),
    ROW(17, 2, "TcpIp/Fail", net_fail_2),
    TCP_ROWS(18, "TcpIp/TCPCopy", tcp_1, net_2),
    TCP_ROWS(19, "TcpIp/ARPCopy", tcp_1, net_2),
    TCP_ROWS(20, "TcpIp/FullACK", tcp_1, net_2),
    TCP_ROWS(21, "TcpIp/PartACK", tcp_1, net_2),
    TCP_ROWS(22, "TcpIp/DupACK", tcp_1, net_2),
    ROW(26, 0, "TcpIp/SendIPV6", tcp6_send_2),
    ROW(27, 0, "TcpIp/RecvIPV6", net6_2),
    ROW(28, 0, "TcpIp/ConnectIPV6", tcp6_connect_2),
    ROW(29, 0, "TcpIp/DisconnectIPV6", net6_2),
    ROW(30, 0, "TcpIp/RetransmitIPV6", net6_2),
    ROW(31, 0, "TcpIp/AcceptIPV6", tcp6_connect_2),
    ROW(32, 0, "TcpIp/ReconnectIPV6", net6_2),
    ROW(34, 0, "TcpIp/TCPCopyIPV6", net6_2),
};
const struct ew_kernel_class ew_kernel_tcpip =
    EW_KERNEL_CLASS("TcpIp", "Windows Kernel", tcp_events);

static const struct ew_kernel_event udp_events[] = {
    ROW(10, 0, "UdpIp/Send", udp_0),      ROW(10, 1, "UdpIp/Send", udp_1),
    ROW(10, 2, "UdpIp/Send", net_2),      ROW(11, 0, "UdpIp/Recv", udp_0),
    ROW(11, 1, "UdpIp/Recv", udp_1),      ROW(11, 2, "UdpIp/Recv", net_2),
    ROW(17, 0, "UdpIp/Fail", net_fail_2), ROW(26, 0, "UdpIp/SendIPV6", net6_2),
    ROW(27, 0, "UdpIp/RecvIPV6", net6_2),
};
const struct ew_kernel_class ew_kernel_udpip =
    EW_KERNEL_CLASS("UdpIp", "Windows Kernel", udp_events);
