// What client-go sees of a cluster through a shared informer: `client KUBECONFIG` prints one line for each thing that
// happened. Informers list and watch, and watch again, in the way all controllers written in Go do.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const namespace = "go"

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	space := &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: namespace}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, space, meta.CreateOptions{}); err != nil {
		return err
	}

	// Every namespace has a ConfigMap of the cluster's own.
	ours := func(options *meta.ListOptions) { options.FieldSelector = "metadata.name!=kube-root-ca.crt" }
	factory := informers.NewSharedInformerFactoryWithOptions(
		client, 0, informers.WithNamespace(namespace), informers.WithTweakListOptions(ours))
	maps := factory.Core().V1().ConfigMaps()
	events := make(chan string, 16)
	_, err = maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { events <- "added " + shown(object) },
		UpdateFunc: func(_, object any) { events <- "updated " + shown(object) },
		DeleteFunc: func(object any) { events <- "deleted " + shown(object) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), maps.Informer().HasSynced) {
		return fmt.Errorf("the cache was not filled in time")
	}

	// Each change waits until the informer has told of the one before it.
	api := client.CoreV1().ConfigMaps(namespace)
	steps := []func() error{
		func() error {
			made := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}
			_, err := api.Create(ctx, made, meta.CreateOptions{})
			return err
		},
		func() error {
			patch := []byte(`{"data":{"k":"w"}}`)
			_, err := api.Patch(ctx, "a", types.StrategicMergePatchType, patch, meta.PatchOptions{})
			return err
		},
		func() error {
			listed, err := maps.Lister().ConfigMaps(namespace).List(labels.Everything())
			fmt.Println("cached", len(listed))
			if err != nil {
				return err
			}
			return api.Delete(ctx, "a", meta.DeleteOptions{})
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
		select {
		case event := <-events:
			fmt.Println(event)
		case <-ctx.Done():
			return fmt.Errorf("the informer did not tell of a change in time")
		}
	}
	return nil
}

func shown(object any) string {
	made := object.(*core.ConfigMap)
	return fmt.Sprintf("%s %v", made.Name, made.Data)
}
