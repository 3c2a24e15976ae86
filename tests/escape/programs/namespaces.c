// E01: new namespaces by every door, and the kernel parts that a user namespace would open.
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <pthread.h>

#include "attempt.h"

static const struct {
    const char* name;
    unsigned long flag;
} kNamespaces[] = {{"user", CLONE_NEWUSER},     {"mount", CLONE_NEWNS}, {"pid", CLONE_NEWPID},
                   {"net", CLONE_NEWNET},       {"ipc", CLONE_NEWIPC},  {"uts", CLONE_NEWUTS},
                   {"cgroup", CLONE_NEWCGROUP}, {"time", 0x80}};

static void each_namespace(void) {
    char what[64];
    for (size_t i = 0; i < sizeof(kNamespaces) / sizeof(kNamespaces[0]); ++i) {
        snprintf(what, sizeof(what), "unshare %s", kNamespaces[i].name);
        attempt(what, unshare(kNamespaces[i].flag));
        if (kNamespaces[i].flag == 0x80) continue;  // clone reads these bits as a signal
        snprintf(what, sizeof(what), "clone %s", kNamespaces[i].name);
        const long child = syscall(SYS_clone, kNamespaces[i].flag | SIGCHLD, 0, 0, 0, 0);
        if (child == 0) _exit(0);
        attempt(what, child);
        snprintf(what, sizeof(what), "clone %s as a user of its own", kNamespaces[i].name);
        const long mapped =
            syscall(SYS_clone, kNamespaces[i].flag | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
        if (mapped == 0) _exit(0);
        attempt(what, mapped);
    }
    uint64_t arguments[11] = {CLONE_NEWUSER, 0, 0, 0, SIGCHLD};
    const long child = syscall(SYS_clone3, arguments, sizeof(arguments));
    if (child == 0) _exit(0);
    attempt("clone3", child);
}

// Sends one request to the routing netlink and answers what the kernel says to it.
static long route_request(int type, const void* body, size_t size) {
    struct {
        struct nlmsghdr head;
        char body[64];
    } message = {.head = {.nlmsg_len = NLMSG_LENGTH(size),
                          .nlmsg_type = type,
                          .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE}};
    memcpy(message.body, body, size);
    const int route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    char answer[4096];
    if (route < 0 || send(route, &message, message.head.nlmsg_len, 0) < 0) return -1;
    if (recv(route, answer, sizeof(answer), 0) < 0) return -1;
    errno = -((struct nlmsgerr*)NLMSG_DATA((struct nlmsghdr*)answer))->error;
    close(route);
    return errno == 0 ? 0 : -1;
}

static void network_administration(void) {
    attempt("nftables socket", socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
    attempt("xfrm socket", socket(AF_NETLINK, SOCK_RAW, NETLINK_XFRM));
    attempt("key socket", socket(AF_KEY, SOCK_RAW, 2));
    const struct tcmsg queue = {.tcm_family = AF_UNSPEC, .tcm_ifindex = 1, .tcm_parent = TC_H_ROOT};
    attempt("traffic control", route_request(RTM_NEWQDISC, &queue, sizeof(queue)));
    const struct ifinfomsg up = {
        .ifi_family = AF_UNSPEC, .ifi_index = 1, .ifi_flags = 0, .ifi_change = 1};
    attempt("take lo down", route_request(RTM_NEWLINK, &up, sizeof(up)));
    const struct ifaddrmsg address = {.ifa_family = AF_INET, .ifa_prefixlen = 8, .ifa_index = 1};
    attempt("new address", route_request(RTM_NEWADDR, &address, sizeof(address)));
    const struct rtmsg route = {
        .rtm_family = AF_INET, .rtm_table = RT_TABLE_LOCAL, .rtm_type = RTN_LOCAL};
    attempt("new route", route_request(RTM_NEWROUTE, &route, sizeof(route)));
}

static void* nothing(void* argument) {
    return argument;
}

int main(void) {
    each_namespace();
    network_administration();
    pthread_t thread;
    errno = pthread_create(&thread, NULL, nothing, NULL);
    must("threads", errno == 0 ? 0 : -1);
    return 0;
}
