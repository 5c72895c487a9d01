// A real kube-apiserver with its etcd in one process, for the tests that hold krafla against Kubernetes itself:
//
//	kube-apiserver [--durable] DIRECTORY
//
// It keeps everything in the directory, writes DIRECTORY/kubeconfig and DIRECTORY/token, prints "ready" once requests are
// served, and ends when its standard input does. What is stored survives the machine only with --durable, which is what a
// benchmark compares with. No other part of Kubernetes runs: nobody schedules, runs or collects anything.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

const startWithin = 2 * time.Minute

func main() {
	durable := flag.Bool("durable", false, "write to disk before anything is acknowledged")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: kube-apiserver [--durable] DIRECTORY")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *durable); err != nil {
		fmt.Fprintln(os.Stderr, "kube-apiserver:", err)
		os.Exit(1)
	}
}

func run(dir string, durable bool) error {
	storage, err := startStorage(filepath.Join(dir, "etcd"), durable)
	if err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	token, err := writeSecrets(dir)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- serve(dir, storage, port) }()
	ready := make(chan error, 1)
	go func() { ready <- waitUntilReady(port, token) }()
	select {
	case err := <-served:
		return fmt.Errorf("ended before it was ready: %w", err)
	case err := <-ready:
		if err != nil {
			return err
		}
	}
	if err := writeKubeconfig(dir, port, token); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// startStorage runs etcd on free ports and returns its address.
func startStorage(dir string, durable bool) (string, error) {
	config := embed.NewConfig()
	config.Dir = dir
	config.LogLevel = "error"
	config.UnsafeNoFsync = !durable
	var urls []url.URL
	for range 2 {
		port, err := freePort()
		if err != nil {
			return "", err
		}
		urls = append(urls, url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = urls[:1], urls[:1]
	config.ListenPeerUrls, config.AdvertisePeerUrls = urls[1:], urls[1:]
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return urls[0].String(), nil
	case <-time.After(startWithin):
		return "", fmt.Errorf("etcd is not ready after %s", startWithin)
	}
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// writeSecrets makes the key that signs the tokens of service accounts, and the token of an administrator.
func writeSecrets(dir string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	block := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, "accounts.key"), block, 0o600); err != nil {
		return "", err
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return "", err
	}
	token := hex.EncodeToString(random)
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(token), 0o600); err != nil {
		return "", err
	}
	line := token + ",admin,admin,system:masters\n"
	return token, os.WriteFile(filepath.Join(dir, "tokens.csv"), []byte(line), 0o600)
}

func serve(dir, storage string, port int) error {
	command := app.NewAPIServerCommand()
	key := filepath.Join(dir, "accounts.key")
	command.SetArgs([]string{
		"--etcd-servers=" + storage,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--cert-dir=" + dir,
		"--token-auth-file=" + filepath.Join(dir, "tokens.csv"),
		"--authorization-mode=RBAC",
		// As in krafla's own server, so that answers can be compared.
		"--service-cluster-ip-range=10.250.0.0/16",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		// Nobody makes the accounts that this would wait for.
		"--disable-admission-plugins=ServiceAccount",
	})
	return command.Execute()
}

func waitUntilReady(port int, token string) error {
	client := http.Client{
		// The certificate is only just being made.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		Timeout:   time.Second,
	}
	request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/readyz", port), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	for deadline := time.Now().Add(startWithin); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		answer, err := client.Do(request)
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
	}
	return fmt.Errorf("not ready after %s", startWithin)
}

func writeKubeconfig(dir string, port int, token string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: real, cluster: {server: "https://127.0.0.1:%d", certificate-authority: %q}}]
users: [{name: admin, user: {token: %q}}]
contexts: [{name: real, context: {cluster: real, user: admin}}]
current-context: real
`, port, filepath.Join(dir, "apiserver.crt"), token)
	return os.WriteFile(filepath.Join(dir, "kubeconfig"), []byte(text), 0o600)
}
